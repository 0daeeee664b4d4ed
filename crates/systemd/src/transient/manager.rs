//! systemd's manager on D-Bus. Source: org.freedesktop.systemd1(5).

use std::collections::HashMap;

use futures::StreamExt;
use zbus::names::InterfaceName;
use zbus::zvariant::{ObjectPath, OwnedObjectPath, OwnedValue, Value};

use crate::{Error, Result};

#[zbus::proxy(
    interface = "org.freedesktop.systemd1.Manager",
    default_service = "org.freedesktop.systemd1",
    default_path = "/org/freedesktop/systemd1",
    gen_blocking = false
)]
trait Manager {
    fn subscribe(&self) -> zbus::Result<()>;

    fn start_transient_unit(
        &self,
        name: &str,
        mode: &str,
        properties: &[(&str, Value<'_>)],
        auxiliary: &[(&str, Vec<(&str, Value<'_>)>)],
    ) -> zbus::Result<OwnedObjectPath>;

    fn stop_unit(&self, name: &str, mode: &str) -> zbus::Result<OwnedObjectPath>;

    fn reset_failed_unit(&self, name: &str) -> zbus::Result<()>;

    fn list_units_by_patterns(&self, states: &[&str], patterns: &[&str]) -> zbus::Result<Vec<Row>>;

    #[zbus(signal)]
    fn job_removed(&self, id: u32, job: OwnedObjectPath, unit: String, result: String) -> zbus::Result<()>;

    #[zbus(property)]
    fn version(&self) -> zbus::Result<String>;
}

/// Name, description, load, active and sub state, followed unit, path, job's id, type and path.
type Row = (String, String, String, String, String, String, OwnedObjectPath, u32, String, OwnedObjectPath);

/// The properties of a unit, of all its interfaces that matter.
pub(super) type Properties = HashMap<String, OwnedValue>;

/// A property as it is given to systemd.
pub(super) type Property = (&'static str, Value<'static>);

/// A connection to systemd.
#[derive(Clone, Debug)]
pub(super) struct Systemd {
    connection: zbus::Connection,
    manager: ManagerProxy<'static>,
}

fn failed(what: impl Into<String>) -> impl FnOnce(zbus::Error) -> Error {
    let what = what.into();
    move |source| Error::Systemd { what, source: Box::new(source) }
}

impl Systemd {
    /// Connects to the system's manager.
    pub(super) async fn connect() -> Result<Self> {
        let connection = zbus::Connection::system().await.map_err(failed("connecting to the system bus"))?;
        let manager = ManagerProxy::new(&connection).await.map_err(failed("finding systemd on the bus"))?;
        manager.subscribe().await.map_err(failed("asking systemd for its signals"))?;
        Ok(Self { connection, manager })
    }

    /// Its version, as far as it is a number.
    pub(super) async fn version(&self) -> Result<u32> {
        let text = self.manager.version().await.map_err(failed("asking systemd for its version"))?;
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().map_err(|_| Error::unsupported("systemd", format!("its version is {text:?}")))
    }

    /// Starts a unit and waits until it runs, or has failed to; then systemd's word for it.
    pub(super) async fn start(&self, name: &str, properties: &[Property]) -> Result<String> {
        let mut removed =
            self.manager.receive_job_removed().await.map_err(failed("asking systemd for its signals"))?;
        let properties: Vec<(&str, Value<'_>)> = properties
            .iter()
            .map(|(name, value)| (*name, value.try_clone().unwrap_or(Value::U8(0))))
            .collect();
        let job = self
            .manager
            .start_transient_unit(name, "fail", &properties, &[])
            .await
            .map_err(failed(format!("starting {name}")))?;
        wait_for(&mut removed, &job, name).await
    }

    /// Stops a unit and waits until it is gone. One that is not there is gone already.
    pub(super) async fn stop(&self, name: &str) -> Result<()> {
        let mut removed =
            self.manager.receive_job_removed().await.map_err(failed("asking systemd for its signals"))?;
        match self.manager.stop_unit(name, "replace").await {
            Ok(job) => drop(wait_for(&mut removed, &job, name).await?),
            Err(e) if is_missing(&e) => return Ok(()),
            Err(e) => return Err(failed(format!("stopping {name}"))(e)),
        }
        // A unit that failed stays until it is told otherwise.
        match self.manager.reset_failed_unit(name).await {
            Ok(()) => Ok(()),
            Err(e) if is_missing(&e) => Ok(()),
            Err(e) => Err(failed(format!("forgetting {name}"))(e)),
        }
    }

    /// The units whose names match, with their object paths.
    pub(super) async fn list(&self, pattern: &str) -> Result<Vec<(String, OwnedObjectPath)>> {
        let rows = self
            .manager
            .list_units_by_patterns(&[], &[pattern])
            .await
            .map_err(failed("listing the units of systemd"))?;
        Ok(rows.into_iter().map(|row| (row.0, row.6)).collect())
    }

    /// What a unit is and how it is; none if it is gone.
    pub(super) async fn properties(&self, path: &ObjectPath<'_>) -> Result<Option<Properties>> {
        let proxy = zbus::fdo::PropertiesProxy::builder(&self.connection)
            .destination("org.freedesktop.systemd1")
            .and_then(|b| b.path(path.to_owned()))
            .map_err(failed("naming a unit"))?
            .build()
            .await
            .map_err(failed("finding a unit"))?;
        let mut all = HashMap::new();
        for interface in ["org.freedesktop.systemd1.Unit", "org.freedesktop.systemd1.Service"] {
            let interface = InterfaceName::from_static_str_unchecked(interface);
            match proxy.get_all(interface).await {
                Ok(found) => all.extend(found),
                Err(zbus::fdo::Error::UnknownObject(_) | zbus::fdo::Error::UnknownInterface(_)) => {
                    return Ok(None);
                }
                Err(e) => return Err(failed("reading the state of a unit")(e.into())),
            }
        }
        Ok(Some(all))
    }

    /// Every change of any unit, as the path of the unit.
    pub(super) async fn changes(&self) -> Result<impl futures::Stream<Item = OwnedObjectPath> + use<>> {
        let rule = zbus::MatchRule::builder()
            .msg_type(zbus::message::Type::Signal)
            .sender("org.freedesktop.systemd1")
            .and_then(|b| b.interface("org.freedesktop.DBus.Properties"))
            .and_then(|b| b.member("PropertiesChanged"))
            .and_then(|b| b.path_namespace("/org/freedesktop/systemd1/unit"))
            .map_err(failed("asking for changes"))?
            .build();
        let stream = zbus::MessageStream::for_match_rule(rule, &self.connection, Some(CHANGES))
            .await
            .map_err(failed("asking for changes"))?;
        Ok(stream.filter_map(|message| async move { Some(message.ok()?.header().path()?.to_owned().into()) }))
    }
}

/// Signals that may wait for us.
const CHANGES: usize = 1024;

async fn wait_for(removed: &mut JobRemovedStream, job: &OwnedObjectPath, name: &str) -> Result<String> {
    while let Some(signal) = removed.next().await {
        let Ok(args) = signal.args() else { continue };
        if args.job() == job {
            return Ok(args.result().clone());
        }
    }
    Err(Error::unsupported(
        format!("waiting for {name}"),
        "the connection to systemd was lost; is it restarting?",
    ))
}

fn is_missing(error: &zbus::Error) -> bool {
    matches!(error, zbus::Error::MethodError(name, ..) if name.as_str() == "org.freedesktop.systemd1.NoSuchUnit")
}
