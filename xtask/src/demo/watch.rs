//! What happens in the cluster, as `kubectl get --raw` streams it.

use std::io::BufReader;
use std::process::{Child, Stdio};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Instant;

use serde_json::{Deserializer, Value};

use super::cluster::Cluster;

/// The collections that are watched.
const COLLECTIONS: [&str; 6] = [
    "/apis/examples.com/v1/namespaces/default/pipelines",
    "/apis/examples.com/v1/namespaces/default/apps",
    "/apis/examples.com/v1/namespaces/default/databases",
    "/apis/batch/v1/namespaces/default/jobs",
    "/apis/apps/v1/namespaces/default/deployments",
    "/api/v1/namespaces/default/secrets",
];

/// Ended when it is dropped.
pub(super) struct Watch(Child);

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Watches everything that the story is about.
pub(super) fn all(cluster: &Cluster, to: &Sender<(Instant, Value)>) -> Result<Vec<Watch>, String> {
    COLLECTIONS.iter().map(|collection| one(cluster, collection, to.clone())).collect()
}

fn one(cluster: &Cluster, collection: &str, to: Sender<(Instant, Value)>) -> Result<Watch, String> {
    let mut command = cluster.kubectl_command();
    command.args(["get", "--raw", &format!("{collection}?watch=1")]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|e| format!("kubectl: {e}"))?;
    let stdout = child.stdout.take().ok_or("kubectl has no stdout")?;
    thread::spawn(move || {
        for event in
            Deserializer::from_reader(BufReader::new(stdout)).into_iter::<Value>().map_while(Result::ok)
        {
            if to.send((Instant::now(), event)).is_err() {
                return;
            }
        }
    });
    Ok(Watch(child))
}
