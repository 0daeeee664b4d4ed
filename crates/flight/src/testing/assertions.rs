//! Assertions on an evaluation. They say what was there instead.

use horchestra_core::{Extent, GroupVersionKind, Read, Resource};

use super::Evaluation;

impl Evaluation {
    /// That a resource of this type and name is wanted; it is handed back for a closer look.
    ///
    /// # Panics
    /// If it is not.
    #[track_caller]
    pub fn assert_wants<T: Resource>(&self, name: &str) -> T {
        let kind = T::kind(&());
        assert!(self.wants::<T>(name).is_some(), "{kind} {name} is not wanted, only {:?}", self.wanted());
        self.wants(name).expect("was there a line ago")
    }

    /// That no resource of this type and name is wanted.
    ///
    /// # Panics
    /// If it is.
    #[track_caller]
    pub fn assert_lacks<T: Resource>(&self, name: &str) {
        assert!(
            self.wants::<T>(name).is_none(),
            "{} {name} is wanted, among {:?}",
            T::kind(&()),
            self.wanted()
        );
    }

    /// That exactly these resources are wanted, written as `Job.batch one`, in order.
    ///
    /// # Panics
    /// If others are, or in another order.
    #[track_caller]
    pub fn assert_wants_exactly(&self, resources: &[&str]) {
        assert_eq!(self.wanted(), resources, "what is wanted");
        let said = self.desired.extent() != Extent::Unsaid;
        assert!(said, "the answer is only a status; it does not say that nothing is wanted");
    }

    /// That an object of this type and name was looked for, whether it was there or not.
    ///
    /// # Panics
    /// If it was not.
    #[track_caller]
    pub fn assert_reads<T: Resource>(&self, name: &str) {
        let wanted = GroupVersionKind::of::<T>();
        let is =
            |read: &&Read| matches!(read, Read::Get { kind, name: n, .. } if *kind == wanted && **n == *name);
        let reads: Vec<_> = self.reads.iter().map(|(read, _)| read).collect();
        assert!(reads.iter().any(is), "{} {name} was not read, only {reads:?}", wanted.kind);
    }

    /// That objects of this type were listed.
    ///
    /// # Panics
    /// If they were not.
    #[track_caller]
    pub fn assert_lists<T: Resource>(&self) {
        let wanted = GroupVersionKind::of::<T>();
        let reads: Vec<_> = self.reads.iter().map(|(read, _)| read).collect();
        let is = |read: &&Read| matches!(read, Read::List { kind, .. } if *kind == wanted);
        assert!(reads.iter().any(is), "{} was not listed, only {reads:?}", wanted.kind);
    }

    /// That the answer waits for something whose description contains this text.
    ///
    /// # Panics
    /// If it does not.
    #[track_caller]
    pub fn assert_waits_for(&self, text: &str) {
        let waits = self.waiting().iter().any(|w| w.contains(text));
        assert!(waits, "it does not wait for {text:?}, only for {:?}", self.waiting());
    }

    /// That the status has this message.
    ///
    /// # Panics
    /// If it has another.
    #[track_caller]
    pub fn assert_message(&self, message: &str) {
        assert_eq!(self.message(), message, "the status is {:?}", self.desired.own_status());
    }
}
