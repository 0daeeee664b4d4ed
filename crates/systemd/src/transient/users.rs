//! Users that only an image knows. systemd refuses a number that no user database has, so there is
//! a record for each, in memory. Source: "JSON User Records" and "JSON Group Records" of systemd.

use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use horchestra_oci::ResolvedUser;
use serde_json::{Value, json};

use crate::{Error, Result};

/// Where systemd's own lookup finds records that programs drop; gone after a reboot.
const DIRECTORY: &str = "/run/userdb";

/// Lets systemd know the numbers of a user.
pub(super) fn announce(user: &ResolvedUser) -> Result<()> {
    announce_in(Path::new(DIRECTORY), user)
}

fn announce_in(directory: &Path, user: &ResolvedUser) -> Result<()> {
    let failed = |e: std::io::Error| Error::io(directory.display().to_string(), e);
    std::fs::create_dir_all(directory).map_err(failed)?;
    let name = |id: u32| format!("horchestra-{id}");
    if user.uid != 0 {
        let record = json!({
            "userName": name(user.uid), "uid": user.uid, "gid": user.gid,
            "disposition": "container", "homeDirectory": "/", "shell": "/usr/sbin/nologin", "locked": true,
        });
        write(directory, &name(user.uid), user.uid, "user", &record)?;
    }
    let groups: BTreeSet<u32> = user.groups.iter().copied().chain([user.gid]).filter(|g| *g != 0).collect();
    for gid in groups {
        let record = json!({"groupName": name(gid), "gid": gid, "disposition": "container"});
        write(directory, &name(gid), gid, "group", &record)?;
    }
    Ok(())
}

/// A record by name, and a link to it by number.
fn write(directory: &Path, name: &str, id: u32, what: &str, record: &Value) -> Result<()> {
    let path = directory.join(format!("{name}.{what}"));
    let failed = |e: std::io::Error| Error::io(path.display().to_string(), e);
    let part = directory.join(format!(".{name}.{what}.part"));
    let mut file = std::fs::File::create(&part).map_err(failed)?;
    file.set_permissions(std::fs::Permissions::from_mode(0o644)).map_err(failed)?;
    file.write_all(record.to_string().as_bytes()).map_err(failed)?;
    std::fs::rename(&part, &path).map_err(failed)?;
    match symlink(format!("{name}.{what}"), directory.join(format!("{id}.{what}"))) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => Err(failed(e)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_and_its_groups_are_found_by_number() {
        let dir = tempfile::tempdir().unwrap();
        let user = ResolvedUser { uid: 70, gid: 71, groups: vec![71, 72], home: None };
        announce_in(dir.path(), &user).unwrap();
        announce_in(dir.path(), &user).unwrap();
        let read = |name: &str| {
            let text = std::fs::read_to_string(dir.path().join(name)).unwrap();
            serde_json::from_str::<Value>(&text).unwrap()
        };
        assert_eq!(read("70.user")["gid"], 71);
        assert_eq!(read("71.group")["gid"], 71);
        assert_eq!(read("72.group")["groupName"], "horchestra-72");
    }

    #[test]
    fn root_needs_no_record() {
        let dir = tempfile::tempdir().unwrap();
        announce_in(dir.path(), &ResolvedUser::default()).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
