//! The folder of keys and certificates.

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use jiff::{Timestamp, ToSpan as _};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;

use super::{PkiError, der};

const AUTHORITY: &str = "horchestra-ca";
const ADMIN: &str = "admin";
const MASTERS: &str = crate::User::MASTERS;
const AUTHORITY_DAYS: i32 = 3650;
const LEAF_DAYS: i32 = 365;
/// A certificate that ends sooner is made anew.
const RENEW_DAYS: i64 = 30;
const TOKEN_BYTES: usize = 32;

/// Keys and certificates in a folder that only its owner can read: made once, renewed before they end.
pub struct Pki {
    folder: PathBuf,
    authority: String,
    authority_key: KeyPair,
    token: String,
}

impl std::fmt::Debug for Pki {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pki").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Pki {
    /// Opens the folder, and makes what is missing in it.
    pub fn open(folder: &Path) -> Result<Self, PkiError> {
        let failed = |source| PkiError::File { path: folder.to_owned(), source };
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)).map_err(failed)?;
        let (certificate, key) = (folder.join("ca.crt"), folder.join("ca.key"));
        let authority_key = match read(&key)? {
            Some(text) => KeyPair::from_pem(&text)
                .map_err(|error| PkiError::Damaged { path: key.clone(), reason: error.to_string() })?,
            None => {
                let made = new_key(AUTHORITY)?;
                write_private(&key, made.serialize_pem().as_bytes())?;
                made
            }
        };
        let authority = match read(&certificate)?.filter(|text| fresh(text)) {
            Some(text) => text,
            None => {
                let made = authority_params()
                    .self_signed(&authority_key)
                    .map_err(|e| failed_to_make(AUTHORITY, e))?;
                write_private(&certificate, made.pem().as_bytes())?;
                made.pem()
            }
        };
        let token_file = folder.join("admin.token");
        let token = match read(&token_file)?.map(|t| t.trim().to_owned()).filter(|t| t.len() >= TOKEN_BYTES) {
            Some(token) => token,
            None => {
                let random: Vec<u8> =
                    (0..TOKEN_BYTES / 16).flat_map(|_| uuid::Uuid::new_v4().into_bytes()).collect();
                let token = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(random);
                write_private(&token_file, token.as_bytes())?;
                token
            }
        };
        Ok(Self { folder: folder.to_owned(), authority, authority_key, token })
    }

    /// The authority's certificate, PEM.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The admin's bearer token.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// TLS for a server that listens on `address`, and that asks clients for certificates of our authority.
    pub fn server(&self, address: SocketAddr) -> Result<rustls::ServerConfig, PkiError> {
        let mut names = vec![SanType::IpAddress(IpAddr::from([127, 0, 0, 1]))];
        for ip in [IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1_u16]), address.ip()] {
            if !ip.is_unspecified() && !names.contains(&SanType::IpAddress(ip)) {
                names.push(SanType::IpAddress(ip));
            }
        }
        for name in ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"] {
            let name = name.try_into().map_err(|e: rcgen::Error| failed_to_make("server", e))?;
            names.push(SanType::DnsName(name));
        }
        // The name of the file carries the address: another address needs another certificate.
        let file = format!("server-{}", address.ip().to_string().replace(':', "_"));
        let (certificate, key) =
            self.leaf(&file, "horchestra-apiserver", &[], names, ExtendedKeyUsagePurpose::ServerAuth)?;
        let failed = |error: rustls::Error| failed_to_make("server", error);
        let damaged = |path: &str, error: &dyn std::fmt::Display| PkiError::Damaged {
            path: self.folder.join(path),
            reason: error.to_string(),
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = rustls::RootCertStore::empty();
        let authority =
            CertificateDer::from_pem_slice(self.authority.as_bytes()).map_err(|e| damaged("ca.crt", &e))?;
        roots.add(authority.clone()).map_err(failed)?;
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone())
            .allow_unauthenticated()
            .build()
            .map_err(|e| damaged("ca.crt", &e))?;
        let leaf =
            CertificateDer::from_pem_slice(certificate.as_bytes()).map_err(|e| damaged("server.crt", &e))?;
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|e| damaged("server.key", &e))?;
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![leaf], key)
            .map_err(failed)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }

    /// Certificate and key of the admin, PEM.
    pub fn admin(&self) -> Result<(String, String), PkiError> {
        self.leaf("admin", ADMIN, &[MASTERS], Vec::new(), ExtendedKeyUsagePurpose::ClientAuth)
    }

    /// A certificate of our authority, from the folder if it is there and has time left.
    fn leaf(
        &self,
        file: &str,
        name: &str,
        organisations: &[&str],
        names: Vec<SanType>,
        usage: ExtendedKeyUsagePurpose,
    ) -> Result<(String, String), PkiError> {
        let (certificate_file, key_file) =
            (self.folder.join(format!("{file}.crt")), self.folder.join(format!("{file}.key")));
        if let (Some(certificate), Some(key)) = (read(&certificate_file)?, read(&key_file)?)
            && fresh(&certificate)
            && issued_after(&certificate_file, &self.folder.join("ca.crt"))
        {
            return Ok((certificate, key));
        }
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        for organisation in organisations {
            params.distinguished_name.push(DnType::OrganizationName, *organisation);
        }
        params.subject_alt_names = names;
        params.extended_key_usages = vec![usage];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        params.use_authority_key_identifier_extension = true;
        validity(&mut params, LEAF_DAYS);
        let key = new_key(name)?;
        let issuer = Issuer::new(authority_params(), &self.authority_key);
        let certificate = params.signed_by(&key, &issuer).map_err(|e| failed_to_make(name, e))?;
        let (certificate, key) = (certificate.pem(), key.serialize_pem());
        write_private(&key_file, key.as_bytes())?;
        write_private(&certificate_file, certificate.as_bytes())?;
        Ok((certificate, key))
    }
}

fn failed_to_make(name: &str, error: impl std::fmt::Display) -> PkiError {
    PkiError::Make { name: name.to_owned(), reason: error.to_string() }
}

fn new_key(name: &str) -> Result<KeyPair, PkiError> {
    KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(|error| failed_to_make(name, error))
}

/// The same each time: what leaves name as their issuer must not depend on when they are made.
fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, AUTHORITY);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages =
        vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    validity(&mut params, AUTHORITY_DAYS);
    params
}

/// From yesterday, for clocks that are behind, for so many days.
fn validity(params: &mut CertificateParams, days: i32) {
    let date = |offset: i32| {
        let now = Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
        let day = now.checked_add(offset.days()).unwrap_or(now);
        rcgen::date_time_ymd(day.year().into(), day.month().unsigned_abs(), day.day().unsigned_abs())
    };
    params.not_before = date(-1);
    params.not_after = date(days);
}

/// True when a PEM certificate has more than [`RENEW_DAYS`] left.
fn fresh(pem: &str) -> bool {
    CertificateDer::from_pem_slice(pem.as_bytes())
        .ok()
        .and_then(|certificate| der::identity(&certificate))
        .is_some_and(|identity| identity.not_after > Timestamp::now().as_second() + RENEW_DAYS * 86_400)
}

/// A leaf that is older than the authority's certificate was signed under a former one.
fn issued_after(leaf: &Path, authority: &Path) -> bool {
    let time = |path: &Path| std::fs::metadata(path).and_then(|m| m.modified()).ok();
    matches!((time(leaf), time(authority)), (Some(leaf), Some(authority)) if leaf >= authority)
}

fn read(path: &Path) -> Result<Option<String>, PkiError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(PkiError::File { path: path.to_owned(), source }),
    }
}

/// Writes a file that only its owner can read, whole or not at all.
pub(super) fn write_private(path: &Path, bytes: &[u8]) -> Result<(), PkiError> {
    let failed = |source| PkiError::File { path: path.to_owned(), source };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", uuid::Uuid::new_v4().simple()));
    let temporary = path.with_file_name(name);
    let written = (|| {
        let mut file =
            std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)
    })();
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written.map_err(failed)
}
