//! What `kubectl` needs to find the server and to be the admin.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::store::write_private;
use super::{Pki, PkiError};

impl Pki {
    /// A kubeconfig with everything in it, for the admin.
    pub fn kubeconfig(&self, url: &str) -> Result<String, PkiError> {
        let (certificate, key) = self.admin()?;
        Ok(format!(
            "apiVersion: v1\n\
             kind: Config\n\
             clusters:\n\
             - name: horchestra\n\
             \x20 cluster:\n\
             \x20   server: {url}\n\
             \x20   certificate-authority-data: {}\n\
             users:\n\
             - name: admin\n\
             \x20 user:\n\
             \x20   client-certificate-data: {}\n\
             \x20   client-key-data: {}\n\
             contexts:\n\
             - name: horchestra\n\
             \x20 context:\n\
             \x20   cluster: horchestra\n\
             \x20   namespace: default\n\
             \x20   user: admin\n\
             current-context: horchestra\n",
            STANDARD.encode(self.authority()),
            STANDARD.encode(certificate),
            STANDARD.encode(key),
        ))
    }

    /// Writes [`kubeconfig`](Self::kubeconfig) to a file that only its owner can read, whole or not at all.
    pub fn write_kubeconfig(&self, path: &Path, url: &str) -> Result<(), PkiError> {
        write_private(path, self.kubeconfig(url)?.as_bytes())
    }
}
