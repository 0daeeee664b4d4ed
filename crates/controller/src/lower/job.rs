//! `batch/v1` Job.

use horchestra_api::{Application, ApplicationPhase, ApplicationStatus};
use horchestra_core::k8s_openapi::api::batch::v1::Job;
use horchestra_core::{Cluster, DesiredState, Result};
use serde_json::{Value, json};

use super::template::{Refused, application};

/// What should exist for a Job: an Application of its name that runs to its end. The Job's status
/// says what Kubernetes' job controller would say of one Pod
/// (kubernetes.io/docs/concepts/workloads/controllers/job).
///
/// # Errors
/// If the cluster cannot be read.
pub async fn job(job: &Job, cluster: &Cluster) -> Result<DesiredState> {
    let name = job.metadata.name.clone().unwrap_or_default();
    let value = serde_json::to_value(job)?;
    let created = value.pointer("/metadata/creationTimestamp").cloned().unwrap_or_default();
    let spec = match lowered(&value) {
        Ok(spec) => spec,
        Err(refused) => {
            let failed = |type_: &str| condition(type_, "Unsupported", &refused.to_string(), &created);
            let conditions = [failed("FailureTarget"), failed("Failed")];
            return Ok(DesiredState::new()
                .status(json!({"startTime": created, "failed": 0, "conditions": conditions})));
        }
    };
    if value.pointer("/spec/suspend") == Some(&Value::Bool(true)) {
        let suspended = condition("Suspended", "JobSuspended", "Job suspended", &created);
        return Ok(DesiredState::nothing().status(json!({"conditions": [suspended]})));
    }
    let labels = value.pointer("/spec/template/metadata/labels").cloned().unwrap_or_else(|| json!({}));
    let manifest = json!({
        "apiVersion": "orch.ks-tool.dev/v1",
        "kind": "Application",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
    });
    let desired = DesiredState::new().with_value(manifest);
    let application = cluster.get::<Application>(&name).await?;
    let status = application.and_then(|a| a.status).unwrap_or_default();
    Ok(desired.status(status_of(&status, &created)?))
}

fn lowered(job: &Value) -> std::result::Result<Value, Refused> {
    let number = |path: &str| job.pointer(path).and_then(Value::as_i64);
    for field in ["parallelism", "completions"] {
        if number(&format!("/spec/{field}")).is_some_and(|n| n != 1) {
            return Err(Refused {
                path: format!("spec.{field}"),
                why: "only 1 is supported on plain Linux nodes; write one Job for each run".into(),
            });
        }
    }
    let template = job.pointer("/spec/template").cloned().unwrap_or_default();
    let mut spec = application(&template)?;
    // A Pod that is not restarted is replaced by the Job, as often as this says.
    spec.insert("backoffLimit".into(), number("/spec/backoffLimit").unwrap_or(6).into());
    if let Some(deadline) = number("/spec/activeDeadlineSeconds") {
        spec.insert("activeDeadlineSeconds".into(), deadline.into());
    }
    Ok(Value::Object(spec))
}

fn status_of(application: &ApplicationStatus, created: &Value) -> Result<Value> {
    let started = match &application.started_at {
        Some(time) => serde_json::to_value(time)?,
        None => created.clone(),
    };
    let finished = match &application.finished_at {
        Some(time) => serde_json::to_value(time)?,
        None => started.clone(),
    };
    let restarts = application.restarts.unwrap_or_default();
    Ok(match application.phase {
        Some(ApplicationPhase::Succeeded) => json!({
            "startTime": started,
            "completionTime": finished,
            "active": 0,
            "ready": 0,
            "succeeded": 1,
            "failed": restarts,
            "conditions": [
                condition("SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods", &finished),
                condition("Complete", "CompletionsReached", "Reached expected number of succeeded pods", &finished),
            ],
        }),
        Some(ApplicationPhase::Failed) => {
            let reason = match application.reason.as_deref() {
                Some("DeadlineExceeded") => "DeadlineExceeded",
                _ => "BackoffLimitExceeded",
            };
            let said = application.message.clone().unwrap_or_default();
            let why = match application.exit_code {
                Some(code) if !said.contains("code") => format!("exit code {code}: {said}"),
                _ => said,
            };
            json!({
                "startTime": started,
                "active": 0,
                "ready": 0,
                "failed": restarts.saturating_add(1),
                "conditions": [condition("FailureTarget", reason, &why, &finished), condition("Failed", reason, &why, &finished)],
            })
        }
        phase => json!({
            "startTime": started,
            "active": 1,
            "ready": i32::from(phase == Some(ApplicationPhase::Running)),
            "failed": restarts,
        }),
    })
}

fn condition(type_: &str, reason: &str, message: &str, time: &Value) -> Value {
    json!({
        "type": type_,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastProbeTime": time,
        "lastTransitionTime": time,
    })
}
