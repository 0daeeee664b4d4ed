//! What a request can ask for beside the object itself.

use std::sync::Arc;
use std::time::Duration;

use horchestra_core::selector::{FieldSelector, LabelSelector};

use crate::kinds::Propagation;
use crate::user::User;

/// What happens to fields that the schema does not know, and to keys that appear twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FieldValidation {
    /// The request is refused, naming all of them.
    Strict,
    /// They are dropped, and the client is warned.
    #[default]
    Warn,
    /// They are dropped.
    Ignore,
}

/// Part of an object that is written by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Subresource {
    /// The object itself.
    #[default]
    None,
    /// Its `status`.
    Status,
    /// Its number of replicas.
    Scale,
}

impl Subresource {
    /// As in URLs and managedFields.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Status => "status",
            Self::Scale => "scale",
        }
    }
}

/// Options of creates, updates, patches and applies.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// Who asks.
    pub user: Arc<User>,
    /// Everything but the write itself.
    pub dry_run: bool,
    /// Who owns the written fields. Needed for apply; otherwise `unknown` when empty.
    pub field_manager: String,
    /// How strict to be about the body.
    pub field_validation: FieldValidation,
    /// An apply takes over fields of other managers.
    pub force: bool,
}

impl WriteOptions {
    /// For a part of this program, which is also the field manager.
    #[must_use]
    pub fn system(name: &str) -> Self {
        Self {
            user: Arc::new(User::system(name)),
            dry_run: false,
            field_manager: name.to_owned(),
            field_validation: FieldValidation::Strict,
            force: false,
        }
    }
}

/// Options of deletes.
#[derive(Debug, Clone)]
pub struct DeleteOptions {
    /// Who asks.
    pub user: Arc<User>,
    /// Everything but the deletion itself.
    pub dry_run: bool,
    /// The object must have this uid.
    pub uid: Option<String>,
    /// The object must be at this version.
    pub resource_version: Option<String>,
    /// What happens to dependents; the kind decides when unset.
    pub propagation: Option<Propagation>,
}

impl DeleteOptions {
    /// For a part of this program.
    #[must_use]
    pub fn system(name: &str) -> Self {
        Self {
            user: Arc::new(User::system(name)),
            dry_run: false,
            uid: None,
            resource_version: None,
            propagation: None,
        }
    }
}

/// Which objects of a kind.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// By labels.
    pub labels: LabelSelector,
    /// By `metadata.name`, `metadata.namespace` and what else the kind allows.
    pub fields: FieldSelector,
}

/// Options of lists.
#[derive(Debug, Clone, Default)]
pub struct ListOptions {
    /// Which objects.
    pub selection: Selection,
    /// At most so many; all for zero.
    pub limit: usize,
    /// From a former answer, to go on after it.
    pub continue_token: String,
    /// Not older than this, or exactly this. Empty or `0` for what is there now.
    pub resource_version: String,
    /// Exactly `resource_version`.
    pub exact: bool,
}

/// Options of watches.
#[derive(Debug, Clone, Default)]
pub struct WatchOptions {
    /// Which objects.
    pub selection: Selection,
    /// Events after this. Empty or `0` replays what is there first.
    pub resource_version: String,
    /// Send the revision from time to time.
    pub bookmarks: bool,
    /// Whether what is there is replayed first; the version decides when unset. `Some(true)` ends it with a bookmark.
    pub initial_events: Option<bool>,
    /// The watch ends after this. Endless when unset.
    pub timeout: Option<Duration>,
}
