//! What a flight does when it is run: one resource in, one answer out.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use horchestra_core::{Cluster, DesiredState, DynReconciler, Error, Object, ReleaseId, Result};

use crate::contract::{Evaluate, Fault, Host, Invocation, Output, Question, Refusal};
use crate::document::document;
use crate::output;
use crate::source::HostSource;

/// The reconcilers of a program and what happens between its stdin and its stdout. This is all of
/// a flight but its imports and exports, so it runs natively too.
pub struct Program<'a>(pub &'a [&'a dyn DynReconciler]);

impl Program<'_> {
    /// Runs once. An error is text on stderr and the exit code 1.
    pub fn run(&self, stdin: &[u8], host: Arc<dyn Host>) -> Output {
        match self.answer(stdin, host) {
            Ok((stdout, exit_code)) => Output { stdout, exit_code, ..Output::default() },
            Err(e) => Output { stderr: format!("{e}\n").into_bytes(), exit_code: 1, ..Output::default() },
        }
    }

    fn answer(&self, stdin: &[u8], host: Arc<dyn Host>) -> Result<(Vec<u8>, i32)> {
        let (instance, desired) =
            self.desired(stdin, |namespace| Cluster::new(Arc::new(HostSource(host)), namespace))?;
        output::encode(&desired, &instance)
    }

    /// What should exist for the resource on stdin, in the view of its release's namespace.
    pub(crate) fn desired(
        &self,
        stdin: &[u8],
        view: impl FnOnce(Arc<str>) -> Cluster,
    ) -> Result<(Object, DesiredState)> {
        let instance = read(stdin)?;
        let kind = instance.group_kind();
        let reconciler = self.0.iter().find(|r| r.kind().group_kind() == kind).ok_or_else(|| {
            let known =
                self.0.iter().map(|r| r.kind().group_kind().to_string()).collect::<Vec<_>>().join(", ");
            Error::invalid(instance.reference(), format!("is of kind {kind}, and this flight is for {known}"))
        })?;
        // As Yoke names releases: an instance of the cluster has its release in `default`.
        let namespace = ReleaseId::of_instance(&instance.reference()).namespace;
        let cluster = view(namespace);
        let desired = poll_once(reconciler.reconcile_object(&instance, &cluster))??.checked()?;
        Ok((instance, desired))
    }
}

impl std::fmt::Debug for Program<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|r| r.kind())).finish()
    }
}

/// The resource on stdin.
fn read(stdin: &[u8]) -> Result<Object> {
    if stdin.trim_ascii().is_empty() {
        return Err(Error::invalid(
            "stdin",
            "is empty; the flight reads one resource there, as JSON or YAML",
        ));
    }
    // What hosts send, without a detour; everything else is read with care, and with better errors.
    Object::from_json(stdin).or_else(|_| Object::from_value(&document("stdin", stdin)?))
}

/// Runs a future that never waits: reads in a flight are answered at once.
pub(crate) fn poll_once<F: Future>(future: F) -> Result<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Ok(value),
        Poll::Pending => Err(Error::terminal(
            "the flight waits for something that is not a read; in a flight only reads through `cluster` can be awaited",
        )),
    }
}

/// A reconciler that plays a flight: the whole contract, without WebAssembly. For tests of hosts.
pub struct NativeFlight<R>(pub R);

impl<R: DynReconciler> Evaluate for NativeFlight<R> {
    fn evaluate(&self, invocation: &Invocation, host: Arc<dyn Host>) -> Result<Output, Fault> {
        let host = Arc::new(Watched { host, pending: AtomicBool::new(false) });
        let output = Program(&[&self.0]).run(&invocation.stdin, host.clone());
        // An engine ends the evaluation at that question; here it has run on, with the same result.
        if host.pending.load(Ordering::Relaxed) { Err(Fault::Pending) } else { Ok(output) }
    }
}

impl<R: DynReconciler> std::fmt::Debug for NativeFlight<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NativeFlight({})", self.0.kind())
    }
}

/// A host that remembers whether it had to refuse for want of an answer.
struct Watched {
    host: Arc<dyn Host>,
    pending: AtomicBool,
}

impl Host for Watched {
    fn ask(&self, question: Question) -> Result<Vec<u8>, Refusal> {
        let answer = self.host.ask(question);
        if answer == Err(Refusal::Pending) {
            self.pending.store(true, Ordering::Relaxed);
        }
        answer
    }
}
