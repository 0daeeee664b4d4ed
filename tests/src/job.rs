//! Jobs that end by hand, where no node runs them.

use crate::Server;

/// Lets a Job succeed, as the controller of Jobs would write it.
///
/// # Panics
/// Where the API refuses it.
pub fn complete(server: &Server, job: &str) {
    let now = "2026-01-01T00:00:00Z";
    let status = format!(
        r#"{{"status":{{"succeeded":1,"startTime":"{now}","completionTime":"{now}","conditions":[
        {{"type":"SuccessCriteriaMet","status":"True","lastTransitionTime":"{now}","lastProbeTime":"{now}"}},
        {{"type":"Complete","status":"True","lastTransitionTime":"{now}","lastProbeTime":"{now}"}}]}}}}"#
    );
    server.ask(&["patch", "job", job, "--subresource=status", "--type=merge", "-p", &status]).unwrap();
}
