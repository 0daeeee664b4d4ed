//! Who asks, and whether they may.

use sha2::Digest as _;

use crate::user::User;

/// What a request wants to do, as Kubernetes' authorisation sees it.
#[derive(Debug, Clone, Copy)]
pub struct Attributes<'a> {
    /// Who asks.
    pub user: &'a User,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; the method in lower case for other paths.
    pub verb: &'a str,
    /// API group.
    pub group: &'a str,
    /// Plural, with the subresource after a slash; empty for other paths.
    pub resource: &'a str,
    /// Empty for all.
    pub namespace: &'a str,
    /// Empty for none.
    pub name: &'a str,
    /// The path of the URL.
    pub path: &'a str,
}

/// Decides whether a request may go on. Asked for every request with an identity.
pub trait Authorizer: Send + Sync {
    /// `Err` says why not.
    fn authorize(&self, attributes: &Attributes<'_>) -> Result<(), String>;
}

/// Members of `system:masters` may do everything, others nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct AdminsOnly;

impl Authorizer for AdminsOnly {
    fn authorize(&self, attributes: &Attributes<'_>) -> Result<(), String> {
        if attributes.user.groups.iter().any(|group| group == User::MASTERS) {
            return Ok(());
        }
        let Attributes { user, verb, group, resource, path, .. } = attributes;
        Err(if resource.is_empty() {
            format!("User {:?} cannot {verb} path {path:?}", user.name)
        } else {
            format!("User {:?} cannot {verb} resource {resource:?} in API group {group:?}", user.name)
        })
    }
}

/// Finds out who asks, from the client's certificate or a bearer token.
#[derive(Debug, Clone)]
pub(crate) struct Authenticator {
    token: [u8; 32],
}

impl Authenticator {
    /// `token` is the admin's.
    pub(crate) fn new(token: &str) -> Self {
        Self { token: digest(token) }
    }

    /// The user of a verified client certificate.
    pub(crate) fn certificate(certificate: &[u8]) -> Option<User> {
        let identity = crate::pki::der::identity(certificate)?;
        if identity.name.is_empty() {
            return None;
        }
        let mut groups = identity.organisations;
        groups.push("system:authenticated".to_owned());
        Some(User { name: identity.name, groups })
    }

    /// The user of an `Authorization` header. Compares digests, so that the time taken says nothing about the token.
    pub(crate) fn bearer(&self, header: &str) -> Option<User> {
        let (scheme, token) = header.split_once(' ')?;
        let known = scheme.eq_ignore_ascii_case("bearer") && digest(token.trim()) == self.token;
        known.then(|| User {
            name: "admin".to_owned(),
            groups: vec![User::MASTERS.to_owned(), "system:authenticated".to_owned()],
        })
    }
}

fn digest(token: &str) -> [u8; 32] {
    sha2::Sha256::digest(token).into()
}
