//! Who asks.

/// An authenticated caller, or a part of this program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Such as `admin` or `system:node:a`.
    pub name: String,
    /// Such as `system:masters`.
    pub groups: Vec<String>,
}

impl User {
    /// The group that may do everything.
    pub const MASTERS: &'static str = "system:masters";

    /// A part of this program, called `system:NAME`, which may do everything.
    #[must_use]
    pub fn system(name: &str) -> Self {
        Self { name: format!("system:{name}"), groups: vec![Self::MASTERS.to_owned()] }
    }

    /// Not authenticated: may only ask for health and version.
    #[must_use]
    pub fn anonymous() -> Self {
        Self { name: "system:anonymous".to_owned(), groups: vec!["system:unauthenticated".to_owned()] }
    }
}
