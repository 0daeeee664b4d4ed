//! The pure part of Horchestra: resources, desired state, plans, the queue. No IO, no clock.
