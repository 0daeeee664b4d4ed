//! Units as objects: applying one makes the supervisor run it.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use horchestra_api::{ApplicationSpec, RestartPolicy};
use horchestra_core::quantity::Quantity;
use horchestra_core::{GroupVersionKind, Kind, Manifest, Object};
use horchestra_oci::{EnvVar, Image, ImagePath, StopSignal, UserName, UserSpec, resolve_user};
use horchestra_runtime::{
    ApplyOptions, DeleteOptions, Listing, Note, Revision, Scope, Table, Target, TargetError, WatchStream,
};
use serde_json::{Map, Value, json};
use tokio::sync::broadcast;
use tokio::task::AbortHandle;

use super::application::{UnitSpec, unit_kind};
use super::files::write_files;
use super::images::Images;
use super::salt::Salt;
use crate::{
    Error, Exit, FailedWhy, Mount, MountSource, Restart, Result, Root, Security, Supervisor, Unit,
    UnitLimits, UnitName, UnitPhase, UnitState,
};

/// How long an image that could not be had waits before it is tried again.
const RETRY: Duration = Duration::from_secs(10);
/// The grace of a workload that names none (Kubernetes' default).
const GRACE: Duration = Duration::from_secs(30);

/// The supervisor of this machine as a target.
#[derive(Clone)]
pub(crate) struct Units(Arc<Inner>);

/// Namespace and name of an object.
type Place = (Arc<str>, Arc<str>);

struct Inner {
    table: Table,
    supervisor: Arc<dyn Supervisor>,
    images: Images,
    /// Files of Secrets and ConfigMaps, for this user alone.
    files: PathBuf,
    names: Mutex<HashMap<UnitName, (Place, String)>>,
    salt: Salt,
    starting: Mutex<HashMap<UnitName, AbortHandle>>,
}

impl Units {
    pub(crate) fn new(supervisor: Arc<dyn Supervisor>, images: Images, files: PathBuf, salt: Salt) -> Self {
        Self(Arc::new(Inner {
            table: Table::new(),
            supervisor,
            images,
            files,
            names: Mutex::default(),
            salt,
            starting: Mutex::default(),
        }))
    }

    /// Follows what the supervisor says about its units, for ever.
    pub(crate) async fn follow(self) {
        let mut changes = self.0.supervisor.watch();
        loop {
            match changes.recv().await {
                Ok(state) => self.observe(&state),
                Err(broadcast::error::RecvError::Lagged(_)) => {
                    for state in self.0.supervisor.list().await {
                        self.observe(&state);
                    }
                }
                Err(broadcast::error::RecvError::Closed) => return,
            }
        }
    }

    fn observe(&self, state: &UnitState) {
        let names = self.0.names.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(((namespace, name), revision)) = names.get(&state.name).cloned() else { return };
        drop(names);
        // Of an older revision: about to be replaced.
        if revision != state.revision {
            return;
        }
        let outcome = self.0.table.change(&namespace, &name, |value| {
            let digest = value.pointer("/status/imageDigest").cloned();
            value["status"] = describe(state);
            if let Some(digest) = digest {
                value["status"]["imageDigest"] = digest;
            }
        });
        if let Err(error) = outcome {
            tracing::error!(%error, unit = %state.name, "its state cannot be kept");
        }
    }

    /// Gets the image and starts the unit; tries again for as long as the image is not to be had.
    async fn start(self, object: Object) {
        loop {
            let error = match self.try_start(&object).await {
                Ok(()) => return,
                Err(error) => error,
            };
            let reason = match &error {
                Error::Image(_) => "ImagePullError",
                Error::Unsupported { what, .. } if what.starts_with("pulling") => "ImagePullError",
                Error::Unsupported { .. } => "Unsupported",
                Error::Invalid { .. } => "Invalid",
                _ => "StartError",
            };
            tracing::warn!(unit = %object.reference(), %error, "cannot be started; trying again");
            let status = json!({"phase": "Pending", "reason": reason, "message": error.to_string()});
            if self.0.table.set_status(&object, status).is_err() {
                return;
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    async fn try_start(&self, object: &Object) -> Result<()> {
        let value = object.to_value();
        let spec: UnitSpec = serde_json::from_value(value.get("spec").cloned().unwrap_or_default())
            .map_err(|e| Error::invalid("spec", e.to_string()))?;
        let (images, reference) = (self.0.images.clone(), spec.application.image.clone());
        let getting = tokio::task::spawn_blocking(move || images.get(&reference));
        let (image, root) = getting.await.map_err(|e| Error::invalid("image", e.to_string()))??;
        let name = UnitName::of(object.namespace(), object.name())?;
        let digest = image.digest.to_string();
        // What the unit is made from, whichever run of this program makes it.
        let revision =
            self.0.salt.digest(&[digest.as_bytes(), &serde_json::to_vec(&value["spec"]).unwrap_or_default()]);
        let place = (object.namespace().clone(), object.name().clone());
        self.0
            .names
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(name.clone(), (place, revision.clone()));
        let starting = json!({"phase": "Pending", "reason": "Starting", "message": "its process is being started", "imageDigest": digest});
        self.0
            .table
            .set_status(object, starting)
            .map_err(|source| Error::Api { what: "unit".into(), source })?;
        let unit = self.unit(name, revision, &spec, &image, root)?;
        self.0.supervisor.start(unit).await?;
        // It may have begun, and even ended, before anybody listened.
        for state in self.0.supervisor.list().await {
            self.observe(&state);
        }
        Ok(())
    }

    /// The unit that an Application and its image come to.
    fn unit(
        &self,
        name: UnitName,
        revision: String,
        spec: &UnitSpec,
        image: &Image,
        root: PathBuf,
    ) -> Result<Unit> {
        let app = &spec.application;
        let argv = command(app, image)?;
        let env = environment(spec, image)?;
        let security = app.security_context.clone().unwrap_or_default();
        let id = |n: i64| {
            u32::try_from(n)
                .map(UserName::Id)
                .map_err(|_| Error::invalid("spec.securityContext", "has an id that is none"))
        };
        let user = match (security.run_as_user, security.run_as_group) {
            (None, None) => image.config.user.clone(),
            (user, group) => Some(UserSpec {
                user: match user {
                    Some(user) => id(user)?,
                    None => image.config.user.clone().map_or(UserName::Id(0), |u| u.user),
                },
                group: group.map(id).transpose()?,
            }),
        };
        let user = resolve_user(&root, user.as_ref())?;
        if security.run_as_non_root == Some(true) && user.uid == 0 {
            return Err(Error::invalid(
                "spec.securityContext.runAsNonRoot",
                "the image runs as root; set runAsUser",
            ));
        }
        let shared = self.0.supervisor.capabilities().shared_roots;
        let path = |text: &str, field: &str| ImagePath::new(text).map_err(|e| Error::invalid(field, e));
        Ok(Unit {
            mounts: self.mounts(&name, spec)?,
            name,
            revision,
            argv,
            env,
            root: if shared { Root::Shared(root) } else { Root::Private(root) },
            working_dir: match &app.working_dir {
                Some(dir) => path(dir, "spec.workingDir")?,
                None => image.config.working_dir.clone(),
            },
            user,
            restart: match app.restart_policy {
                RestartPolicy::Always => Restart::Always,
                RestartPolicy::OnFailure => Restart::OnFailure { retries: retries(app) },
                RestartPolicy::Never => Restart::OnFailure { retries: retries(app).or(Some(0)) },
            },
            stop_signal: image.config.stop_signal.unwrap_or(StopSignal::TERM),
            grace: app
                .termination_grace_period_seconds
                .and_then(|s| u64::try_from(s).ok())
                .map_or(GRACE, Duration::from_secs),
            deadline: app
                .active_deadline_seconds
                .and_then(|s| u64::try_from(s).ok())
                .map(Duration::from_secs),
            limits: limits(app)?,
            security: Security {
                allow_privilege_escalation: security.allow_privilege_escalation.unwrap_or(false),
                drop_capabilities: security.capabilities.map(|c| c.drop).unwrap_or_default(),
            },
        })
    }

    fn mounts(&self, unit: &UnitName, spec: &UnitSpec) -> Result<Vec<Mount>> {
        let mut mounts = Vec::new();
        for (index, mount) in spec.application.volume_mounts.iter().enumerate() {
            let field = format!("spec.volumeMounts[{index}]");
            let path = ImagePath::new(&mount.path).map_err(|e| Error::invalid(format!("{field}.path"), e))?;
            if path.is_reserved() {
                return Err(Error::invalid(format!("{field}.path"), "is the system's own; choose another"));
            }
            let files =
                |of: &BTreeMap<String, BTreeMap<String, String>>, name: &str| -> Result<MountSource> {
                    let dir = self.0.files.join(unit.as_str()).join(index.to_string());
                    write_files(&dir, of.get(name).unwrap_or(&BTreeMap::new()))?;
                    Ok(MountSource::Bind { from: dir, read_only: true })
                };
            let source = match (&mount.secret, &mount.config_map, &mount.tmpfs) {
                (Some(secret), _, _) => files(&spec.secrets, &secret.name)?,
                (_, Some(map), _) => files(&spec.config_maps, &map.name)?,
                (_, _, Some(tmpfs)) => MountSource::Tmpfs {
                    size: tmpfs
                        .size
                        .as_ref()
                        .map(|q| bytes(&q.0, &format!("{field}.tmpfs.size")))
                        .transpose()?,
                },
                _ => return Err(Error::invalid(field, "names neither secret, configMap nor tmpfs")),
            };
            mounts.push(Mount { path, source });
        }
        Ok(mounts)
    }

    async fn stop(self, object: Object) {
        let Ok(name) = UnitName::of(object.namespace(), object.name()) else {
            self.0.table.remove(object.namespace(), object.name());
            return;
        };
        if let Err(error) = self.0.supervisor.remove(&name).await {
            tracing::error!(unit = %name, %error, "something of it is left");
        }
        let files = self.0.files.join(name.as_str());
        if files.exists()
            && let Err(error) = std::fs::remove_dir_all(&files)
        {
            tracing::error!(path = %files.display(), %error, "cannot be removed");
        }
        self.0.names.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
        self.0.table.remove(object.namespace(), object.name());
    }

    /// Lets go of a start that is under way.
    fn cancel(&self, name: &UnitName, next: Option<AbortHandle>) {
        let mut starting = self.0.starting.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match next {
            Some(next) => starting.insert(name.clone(), next),
            None => starting.remove(name),
        };
        if let Some(before) = before {
            before.abort();
        }
    }
}

fn retries(app: &ApplicationSpec) -> Option<u32> {
    app.backoff_limit.and_then(|n| u32::try_from(n).ok())
}

fn bytes(quantity: &str, field: &str) -> Result<u64> {
    let units = Quantity::parse(quantity).map_err(|e| Error::invalid(field, e.to_string()))?.units();
    u64::try_from(units).map_err(|_| Error::invalid(field, "is negative"))
}

fn limits(app: &ApplicationSpec) -> Result<UnitLimits> {
    let Some(limits) = app.resources.as_ref().and_then(|r| r.limits.as_ref()) else {
        return Ok(UnitLimits::default());
    };
    let cpu = limits.cpu.as_ref().map(|q| Quantity::parse(&q.0)).transpose();
    let cpu = cpu.map_err(|e| Error::invalid("spec.resources.limits.cpu", e.to_string()))?;
    Ok(UnitLimits {
        cpu_millis: cpu.and_then(|q| u64::try_from(q.millis()).ok()),
        memory: limits.memory.as_ref().map(|q| bytes(&q.0, "spec.resources.limits.memory")).transpose()?,
    })
}

/// Kubernetes' rules for command and args over the image's entrypoint and cmd
/// (kubernetes.io/docs/tasks/inject-data-application/define-command-argument-container).
fn command(app: &ApplicationSpec, image: &Image) -> Result<Vec<String>> {
    let config = &image.config;
    let argv: Vec<String> = match (app.command.is_empty(), app.args.is_empty()) {
        (true, true) => config.entrypoint.iter().chain(&config.cmd).cloned().collect(),
        (true, false) => config.entrypoint.iter().chain(&app.args).cloned().collect(),
        (false, _) => app.command.iter().chain(&app.args).cloned().collect(),
    };
    if argv.is_empty() {
        return Err(Error::invalid(
            "spec.command",
            "is missing, and the image has neither entrypoint nor cmd",
        ));
    }
    Ok(argv)
}

fn environment(spec: &UnitSpec, image: &Image) -> Result<Vec<EnvVar>> {
    let text = |encoded: &str, field: &str| {
        let bytes = BASE64_STANDARD.decode(encoded).map_err(|e| Error::invalid(field, e.to_string()))?;
        String::from_utf8(bytes).map_err(|_| Error::invalid(field, "is not text; mount it as a file"))
    };
    let mut env: BTreeMap<String, String> =
        image.config.env.iter().map(|v| (v.name().to_owned(), v.value().to_owned())).collect();
    for (index, from) in spec.application.env_from.iter().enumerate() {
        let field = format!("spec.envFrom[{index}]");
        let prefix = from.prefix.clone().unwrap_or_default();
        let secret = from.secret_ref.as_ref().and_then(|r| spec.secrets.get(&r.name));
        let map = from.config_map_ref.as_ref().and_then(|r| spec.config_maps.get(&r.name));
        for (key, value) in secret.into_iter().chain(map).flatten() {
            env.insert(format!("{prefix}{key}"), text(value, &field)?);
        }
    }
    env.extend(spec.application.env.clone());
    for (name, key) in &spec.application.secret_env {
        let field = format!("spec.secretEnv.{name}");
        match spec.secrets.get(&key.name).and_then(|data| data.get(&key.key)) {
            Some(value) => drop(env.insert(name.clone(), text(value, &field)?)),
            None if key.optional == Some(true) => {}
            None => {
                return Err(Error::invalid(field, format!("Secret {} has no key {:?}", key.name, key.key)));
            }
        }
    }
    let make = |(name, value): (String, String)| {
        EnvVar::new(&name, &value).map_err(|e| Error::invalid(format!("spec.env.{name}"), e))
    };
    env.into_iter().map(make).collect()
}

/// The status of a unit, in the words of Applications.
fn describe(state: &UnitState) -> Value {
    let exit = state.last_exit.as_ref().map(ToString::to_string).unwrap_or_default();
    let (phase, reason, message) = match &state.phase {
        UnitPhase::Starting => ("Pending", Some("Starting"), "its process is being started".to_owned()),
        UnitPhase::Running { .. } => ("Running", None, String::new()),
        UnitPhase::BackOff { until } => {
            ("Running", Some("CrashLoopBackOff"), format!("it {exit}; starting again at {until}"))
        }
        UnitPhase::Stopping => ("Terminating", Some("Stopping"), "it was asked to stop".to_owned()),
        UnitPhase::Stopped => ("Pending", Some("Stopped"), "it was stopped with its node".to_owned()),
        UnitPhase::Succeeded => ("Succeeded", Some("Completed"), format!("it {exit}")),
        UnitPhase::Failed { why } => {
            let reason = match why {
                FailedWhy::Retries => "BackoffLimitExceeded",
                FailedWhy::Deadline => "DeadlineExceeded",
            };
            ("Failed", Some(reason), format!("it {exit}"))
        }
    };
    let mut status = Map::new();
    status.insert("phase".into(), phase.into());
    if let Some(reason) = reason {
        status.insert("reason".into(), reason.into());
    }
    if !message.is_empty() {
        status.insert("message".into(), message.into());
    }
    if let Some(exit) = &state.last_exit {
        status.insert("exitCode".into(), Exit::code(exit).into());
    }
    if state.restarts > 0 {
        status.insert("restarts".into(), state.restarts.into());
    }
    let time = |t: &jiff::Timestamp| t.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    if let Some(started) = &state.started {
        status.insert("startedAt".into(), time(started).into());
    }
    if let Some(finished) = &state.finished {
        status.insert("finishedAt".into(), time(finished).into());
    }
    Value::Object(status)
}

#[async_trait]
impl Target for Units {
    async fn resolve(&self, kind: &GroupVersionKind) -> std::result::Result<Option<Kind>, TargetError> {
        let served = unit_kind();
        Ok((kind.group_kind() == served.group_kind()).then_some(served))
    }

    async fn get(
        &self,
        _: &Kind,
        namespace: &str,
        name: &str,
    ) -> std::result::Result<Option<Object>, TargetError> {
        Ok(self.0.table.get(namespace, name))
    }

    async fn list(&self, _: &Kind, scope: &Scope) -> std::result::Result<Listing, TargetError> {
        Ok(self.0.table.list(scope))
    }

    async fn watch(
        &self,
        _: &Kind,
        scope: &Scope,
        from: &Revision,
    ) -> std::result::Result<WatchStream, TargetError> {
        self.0.table.watch(scope, from)
    }

    async fn apply(
        &self,
        _: &Kind,
        manifest: &Manifest,
        options: &ApplyOptions,
    ) -> std::result::Result<Object, TargetError> {
        let name = UnitName::of(manifest.namespace(), manifest.name())
            .map_err(|e| TargetError::Invalid(e.to_string()))?;
        if options.dry_run {
            return Object::from_value(manifest.value()).map_err(|e| TargetError::Invalid(e.to_string()));
        }
        let status =
            json!({"phase": "Pending", "reason": "Pulling", "message": "its image is being prepared"});
        match self.0.table.apply(manifest, status)? {
            Err(same) => Ok(same),
            Ok(new) => {
                let task = tokio::spawn(self.clone().start(new.clone()));
                self.cancel(&name, Some(task.abort_handle()));
                Ok(new)
            }
        }
    }

    async fn set_status(
        &self,
        seen: &Object,
        _: &Kind,
        _: Map<String, Value>,
        _: &str,
    ) -> std::result::Result<Object, TargetError> {
        Err(TargetError::Invalid(format!("{}: the status of a unit is its supervisor's", seen.reference())))
    }

    async fn delete(
        &self,
        _: &Kind,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> std::result::Result<(), TargetError> {
        let Some(object) = self.0.table.get(namespace, name) else { return Ok(()) };
        if options.uid.as_deref().is_some_and(|uid| uid != object.uid()) {
            return Err(TargetError::Conflict(format!("{} is another one now", object.reference())));
        }
        if options.dry_run || object.is_deleting() {
            return Ok(());
        }
        if let Ok(name) = UnitName::of(namespace, name) {
            self.cancel(&name, None);
        }
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        self.0.table.change(namespace, name, |value| value["metadata"]["deletionTimestamp"] = now.into())?;
        tokio::spawn(self.clone().stop(object));
        Ok(())
    }

    async fn note(&self, _: &Object, _: Note) -> std::result::Result<(), TargetError> {
        Ok(())
    }
}
