//! Flights as reconcilers: the Air Traffic Controller of Horchestra.
//!
//! An Airway binds a kind to a flight. What should exist for an Airway is the registration of its
//! flight with the runtime of this process, and the definition of its kind; from then on the flight
//! is the reconciler of that kind, like any other.

mod admission;
mod airway;
mod atc;
mod error;
mod flight_reconciler;
mod module;
mod registration;
mod template;

pub use self::admission::FlightAdmission;
pub use self::airway::{AIRWAY_FINALIZER, AirwayReconciler};
pub use self::atc::{Atc, AtcOptions};
pub use self::error::AtcError;
pub use self::flight_reconciler::{Access, FlightReconciler};
pub use self::module::{Module, Modules};
pub use self::registration::{
    GROUP, INSTANCE_FINALIZER, MANAGED_BY, MANAGER, Registration, Registrations, registration_kind,
};
pub use self::template::{definition, instance_kind};
