//! Types that several rooms of Horchestra share and users write.

mod airway;
mod application;
mod node;
mod orch;
mod volume;

pub use self::airway::{
    Airway, AirwaySpec, AirwayStatus, GoDuration, Mode, Prune, ResourceMatcher, WasmUrls, YOKE_GROUP,
    airway_crd,
};
pub use self::application::*;
pub use self::node::{Node, NodeSpec, NodeStatus};
pub use self::orch::{ORCH_GROUP, ORCH_VERSION, crds};
pub use self::volume::{
    PersistentVolume, PersistentVolumeSpec, PersistentVolumeStatus, ReclaimPolicy, VolumePhase,
};
