//! What watch events mean to somebody who looks on.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The last messages of the two examples, by kind; a start of the message is enough.
const ENDS: [(&str, &[&str]); 2] = [
    ("Pipeline", &["all jobs have completed", "stopped at"]),
    ("App", &["deployed and ready", "cannot be deployed"]),
];

/// What is remembered of an object.
#[derive(Default)]
struct Known {
    /// What was last said about it.
    said: String,
    /// What it waits for, as it says itself.
    waits: String,
    /// Since when others need not wait for it.
    done: Option<Instant>,
}

/// Everything that was heard, by `Kind name`.
pub(super) struct Story {
    started: Instant,
    objects: BTreeMap<String, Known>,
    ends: BTreeMap<&'static str, Instant>,
    /// How long a child came after what it had waited for.
    reactions: Vec<(String, Duration)>,
}

impl Story {
    pub(super) fn new(started: Instant) -> Self {
        Self { started, objects: BTreeMap::new(), ends: BTreeMap::new(), reactions: Vec::new() }
    }

    /// Whether both examples have come to an end.
    pub(super) fn is_over(&self) -> bool {
        self.ends.len() == ENDS.len()
    }

    /// Takes in an event, and gives back the lines to show for it.
    pub(super) fn hear(&mut self, at: Instant, event: &Value) -> Vec<String> {
        let object = &event["object"];
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let kind = text("/kind").to_owned();
        let id = format!("{kind} {}", text("/metadata/name"));
        let mut lines = Vec::new();
        if event["type"] == "DELETED" {
            self.objects.remove(&id);
            return vec![self.line(at, &id, "deleted")];
        }
        if !self.objects.contains_key(&id) {
            let why = self.why(at, &id, object);
            lines.push(self.line(at, &id, &why));
        }
        let now = describe(&kind, object);
        let (said, waits) = (now.text(), now.waits.clone());
        let known = self.objects.entry(id.clone()).or_default();
        known.waits = waits;
        if now.done && known.done.is_none() {
            known.done = Some(at);
        }
        if known.said != said {
            known.said.clone_from(&said);
            if !said.is_empty() {
                lines.push(self.line(at, &id, &said));
            }
        }
        for (kind_that_ends, messages) in ENDS {
            let ended = messages.iter().any(|m| now.message.starts_with(m));
            // Ready, too: the message comes from the function, the condition from what it waits for.
            if kind == kind_that_ends && ended && now.waits.is_empty() {
                self.ends.entry(kind_that_ends).or_insert(at);
            }
        }
        lines
    }

    /// Why an object has appeared.
    fn why(&mut self, at: Instant, id: &str, object: &Value) -> String {
        let owner = &object["metadata"]["ownerReferences"][0];
        let (Some(kind), Some(name)) = (owner["kind"].as_str(), owner["name"].as_str()) else {
            return "asked for".to_owned();
        };
        let owner = format!("{kind} {name}");
        let waited = self.objects.get(&owner).map_or("", |o| o.waits.as_str());
        let cause = self.objects.iter().filter(|(other, _)| waited.contains(other.as_str()));
        let cause = cause.filter_map(|(other, known)| Some((other.clone(), known.done?))).next_back();
        let Some((other, done)) = cause else { return format!("created for {owner}") };
        let after = at.saturating_duration_since(done);
        let other =
            if other.starts_with("Job ") { format!("{other} succeeded") } else { format!("{other} came") };
        self.reactions.push((format!("{id} after {other}"), after));
        format!("created for {owner}, {} ms after {other}", after.as_millis())
    }

    fn line(&self, at: Instant, id: &str, what: &str) -> String {
        let time = at.saturating_duration_since(self.started).as_secs_f64();
        format!("  {time:>6.3} s  {id:<24}  {what}")
    }

    /// How long it took.
    pub(super) fn summary(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (kind, at) in &self.ends {
            let time = at.saturating_duration_since(self.started).as_secs_f64();
            lines.push(format!("{kind:<8}  at its end after {time:.3} s"));
        }
        for (what, time) in &self.reactions {
            lines.push(format!("{what}: {} ms, as kubectl sees it", time.as_millis()));
        }
        lines
    }
}

/// How an object stands.
#[derive(Default)]
struct State {
    message: String,
    waits: String,
    done: bool,
}

impl State {
    fn text(&self) -> String {
        match (self.message.is_empty(), self.waits.is_empty()) {
            // The message may say it already.
            (_, true) => self.message.clone(),
            _ if self.message.contains(&self.waits) => self.message.clone(),
            (true, false) => format!("waits for {}", self.waits),
            (false, false) => format!("{}; waits for {}", self.message, self.waits),
        }
    }
}

fn describe(kind: &str, object: &Value) -> State {
    let status = &object["status"];
    let condition = |name: &str| {
        let all = status["conditions"].as_array().into_iter().flatten();
        all.into_iter().find(|c| c["type"] == name && c["status"] == "True")
    };
    match kind {
        "Job" => {
            if condition("Complete").is_some() {
                return State { message: "has succeeded".into(), done: true, ..State::default() };
            }
            if let Some(failed) = condition("Failed") {
                let part = |name: &str| failed[name].as_str().unwrap_or_default();
                let message = format!("has failed: {}: {}", part("reason"), part("message"));
                return State { message, done: true, ..State::default() };
            }
            let running = status["active"].as_i64().unwrap_or(0) > 0;
            State { message: if running { "runs".into() } else { String::new() }, ..State::default() }
        }
        "Deployment" => {
            let count = |name: &str| status[name].as_i64().unwrap_or(0);
            let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
            let available = count("availableReplicas");
            let message = format!("{available} of {wanted} available");
            State { message, done: available >= wanted, ..State::default() }
        }
        "Secret" => State { done: true, ..State::default() },
        _ => State {
            message: status["message"].as_str().unwrap_or_default().to_owned(),
            waits: waits(status),
            done: false,
        },
    }
}

/// What a resource waits for, by the condition that Horchestra keeps; the first thing is enough.
fn waits(status: &Value) -> String {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let ready = conditions.into_iter().find(|c| c["type"] == "Ready" && c["reason"] == "InProgress");
    let text = ready.and_then(|c| c["message"].as_str()).and_then(|m| m.strip_prefix("waiting for: "));
    text.unwrap_or_default().split(';').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pipeline(message: &str, waits: &str) -> Value {
        let ready = if waits.is_empty() {
            json!({"type": "Ready", "status": "True", "reason": "Ready", "message": "Successfully deployed"})
        } else {
            let message = format!("waiting for: {waits}; something else");
            json!({"type": "Ready", "status": "False", "reason": "InProgress", "message": message})
        };
        json!({"type": "MODIFIED", "object": {"kind": "Pipeline", "metadata": {"name": "p"},
            "status": {"message": message, "conditions": [ready]}}})
    }

    fn job(name: &str, status: Value) -> Value {
        let owner = json!([{"kind": "Pipeline", "name": "p"}]);
        let metadata = json!({"name": name, "ownerReferences": owner});
        json!({"type": "ADDED", "object": {"kind": "Job", "metadata": metadata, "status": status}})
    }

    #[test]
    fn a_child_is_told_with_what_it_had_waited_for() {
        let start = Instant::now();
        let mut story = Story::new(start);
        let after = |ms| start + Duration::from_millis(ms);
        let mut hear = |ms, event: Value| story.hear(after(ms), &event).join("\n");
        assert!(hear(1, job("p-one", json!({}))).ends_with("created for Pipeline p"));
        let line = hear(2, pipeline("running job p-one", "Job p-one to complete"));
        assert!(line.ends_with("running job p-one; waits for Job p-one to complete"), "{line}");
        assert_eq!(hear(3, pipeline("running job p-one", "Job p-one to complete")), "");
        assert!(hear(4, job("p-one", json!({"active": 1}))).ends_with("runs"));
        let complete = json!({"conditions": [{"type": "Complete", "status": "True"}]});
        assert!(hear(50, job("p-one", complete)).ends_with("has succeeded"));
        let line = hear(54, job("p-two", json!({})));
        assert!(line.ends_with("created for Pipeline p, 4 ms after Job p-one succeeded"), "{line}");
        assert!(hear(60, pipeline("all jobs have completed", "")).ends_with("all jobs have completed"));
        assert!(!story.is_over(), "the App is not");
        assert!(story.summary().iter().any(|l| l.contains("Job p-two after Job p-one succeeded: 4 ms")));
    }

    #[test]
    fn a_failure_has_its_reason() {
        let mut story = Story::new(Instant::now());
        let failed = json!({"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "exit code 1"});
        let lines = story.hear(Instant::now(), &job("p-two", json!({"conditions": [failed]})));
        assert!(lines[1].ends_with("has failed: BackoffLimitExceeded: exit code 1"), "{lines:?}");
    }
}
