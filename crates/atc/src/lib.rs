//! Flights as reconcilers: the Air Traffic Controller of Horchestra.
