//! Reads through the runtime's caches.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use horchestra_core::selector::LabelSelector;
use horchestra_core::{Answer, Error, GroupVersionKind, Kind, Read, Result, Source};
use jiff::Timestamp;

use crate::Scope;
use crate::inner::Inner;
use crate::interest::{Subscriber, matches};

/// How long a read waits for the first listing of a kind before it fails with what the target said.
const FIRST_LISTING: Duration = Duration::from_secs(10);

/// Answers reads from the caches, and notes on whose behalf they were made.
pub(crate) struct CacheSource {
    pub(crate) inner: Arc<Inner>,
    pub(crate) reader: Option<Subscriber>,
}

impl CacheSource {
    async fn kind(&self, gvk: &GroupVersionKind) -> Result<Kind> {
        self.inner.resolve(gvk).await?.ok_or_else(|| {
            Error::transient(format!(
                "no matches for kind {:?} in version {:?}; the target does not serve it",
                &*gvk.kind,
                gvk.api_version()
            ))
        })
    }

    /// The watch that answers a read, with its first listing complete.
    async fn watch(&self, read: &Read, kind: &Kind, scope: Scope) -> Result<Arc<crate::informer::Informer>> {
        let informer = self.inner.caches().hold(kind, &scope);
        if let Some(reader) = &self.reader {
            self.inner.interests().add(reader, &self.inner.normalise(read), Some(informer.clone()));
        }
        if !informer.is_synced() && tokio::time::timeout(FIRST_LISTING, informer.wait()).await.is_err() {
            let why = informer.problem().unwrap_or_else(|| "the target does not answer".into());
            return Err(Error::transient(format!("cannot list {kind}: {why}")));
        }
        Ok(informer)
    }
}

#[async_trait]
impl Source for CacheSource {
    async fn read(&self, read: &Read) -> Result<Answer> {
        match read {
            Read::Get { kind, namespace, name } => {
                let kind = self.kind(kind).await?;
                let namespace = if kind.namespaced { namespace.clone() } else { "".into() };
                let informer = self.watch(read, &kind, Scope::Name(namespace.clone(), name.clone())).await?;
                Ok(Answer::Object(informer.get(&(namespace, name.clone()))))
            }
            Read::List { kind, namespace, selector } => {
                let labels = LabelSelector::parse(selector)
                    .map_err(|e| Error::invalid(format!("selector {selector:?}"), e))?;
                let kind = self.kind(kind).await?;
                let scope = match namespace {
                    Some(namespace) if kind.namespaced => Scope::Namespace(namespace.clone()),
                    _ => Scope::All,
                };
                let informer = self.watch(read, &kind, scope.clone()).await?;
                Ok(Answer::Objects(
                    informer.select(|o| scope.contains(o.namespace(), o.name()) && matches(&labels, o)),
                ))
            }
            Read::OlderThan { created, age, object } => {
                let left = time_left(created, *age)
                    .map_err(|e| Error::invalid(format!("{object}: metadata.creationTimestamp"), e))?;
                Ok(Answer::Flag(left.is_zero()))
            }
            Read::Mapping { group, version, kind } => {
                let gvk = GroupVersionKind::new(group.clone(), version.clone(), kind.clone());
                Ok(Answer::Kind(self.inner.resolve(&gvk).await?))
            }
            other => Err(Error::terminal(format!("this runtime cannot answer {other}"))),
        }
    }
}

/// How long until something created then is as old as this; zero if it is already.
pub(crate) fn time_left(created: &str, age: Duration) -> std::result::Result<Duration, String> {
    let created: Timestamp = created.parse().map_err(|e| format!("{created:?} is not a time: {e}"))?;
    let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
    let due = created.as_millisecond().saturating_add(age);
    let left = due.saturating_sub(Timestamp::now().as_millisecond());
    Ok(Duration::from_millis(u64::try_from(left).unwrap_or(0)))
}
