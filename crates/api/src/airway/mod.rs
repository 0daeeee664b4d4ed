//! `yoke.cd/v1alpha1`: Airways, which bind a kind to a flight. Names and defaults are Yoke's.

mod duration;
mod matcher;
mod spec;

use kube_core::CustomResourceExt;
use serde_json::Value;

pub use self::duration::GoDuration;
pub use self::matcher::ResourceMatcher;
pub use self::spec::{Airway, AirwaySpec, AirwayStatus, Mode, Prune, WasmUrls};

/// The group of Airways.
pub const YOKE_GROUP: &str = "yoke.cd";

/// The definition of Airway as a CustomResourceDefinition.
///
/// # Errors
/// Where a schema cannot be written as JSON, which a test rules out.
pub fn airway_crd() -> Result<Value, serde_json::Error> {
    serde_json::to_value(Airway::crd())
}
