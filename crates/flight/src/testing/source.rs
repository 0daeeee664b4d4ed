//! Answers from a fake cluster.

use horchestra_core::k8s_openapi::jiff::{SignedDuration, Timestamp};
use horchestra_core::selector::LabelSelector;
use horchestra_core::{Answer, Error, Object, ObjectRef, Read, Result, Source, async_trait};

use super::FakeCluster;

/// Reads from a copy of a fake cluster.
pub(super) struct FakeSource(pub(super) FakeCluster);

#[async_trait]
impl Source for FakeSource {
    async fn read(&self, read: &Read) -> Result<Answer> {
        let cluster = &self.0;
        Ok(match read {
            Read::Get { kind, namespace, name } => {
                let namespace = if cluster.is_namespaced(kind) { namespace.clone() } else { "".into() };
                let reference = ObjectRef::new(kind.group_kind(), namespace, name.clone());
                Answer::Object(cluster.objects.get(&reference).cloned())
            }
            Read::List { kind, namespace, selector } => {
                let selector = LabelSelector::parse(selector).map_err(|e| Error::invalid("selector", e))?;
                let namespace = namespace.as_ref().filter(|_| cluster.is_namespaced(kind));
                let kind = kind.group_kind();
                let matching = |o: &&Object| {
                    o.group_kind() == kind
                        && namespace.is_none_or(|n| n == o.namespace())
                        && selector.matches_with(|key| o.label(key))
                };
                Answer::Objects(cluster.objects.values().filter(matching).cloned().collect())
            }
            Read::OlderThan { created, age, .. } => {
                let Some(now) = &cluster.now else { return Ok(Answer::Flag(false)) };
                let time = |text: &str| {
                    text.parse::<Timestamp>().map_err(|e| Error::invalid(format!("time {text:?}"), e))
                };
                let age = SignedDuration::try_from(*age).unwrap_or(SignedDuration::MAX);
                Answer::Flag(time(now)?.duration_since(time(created)?) >= age)
            }
            Read::Mapping { group, version, kind } => {
                let gvk =
                    horchestra_core::GroupVersionKind::new(group.clone(), version.clone(), kind.clone());
                let served = cluster.kind(&gvk);
                Answer::Kind(served.filter(|k| version.is_empty() || k.gvk.version == *version))
            }
            other => return Err(Error::terminal(format!("a fake cluster cannot answer {other}"))),
        })
    }
}
