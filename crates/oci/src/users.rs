use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};

use crate::limits::MAX_PASSWD_BYTES;
use crate::{Error, Result, UserName, UserSpec};

/// Who a command runs as, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvedUser {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Supplementary groups of the image's group file.
    pub groups: Vec<u32>,
    /// Home directory of the image's user file.
    pub home: Option<String>,
}

/// Looks a user up in `/etc/passwd` and `/etc/group` of an unpacked image, never in the host's.
///
/// # Errors
/// Where a name is not there. A number needs no entry; its group is then 0, as in Docker.
pub fn resolve_user(root: &Path, spec: Option<&UserSpec>) -> Result<ResolvedUser> {
    let Some(spec) = spec else { return Ok(ResolvedUser::default()) };
    let passwd = read(root, "etc/passwd")?;
    let group = read(root, "etc/group")?;
    let rows = |text: &str| -> Vec<Vec<String>> {
        text.lines().map(|l| l.split(':').map(str::to_owned).collect()).collect()
    };
    let (users, groups) = (rows(&passwd), rows(&group));
    let matches = |row: &[String], wanted: &UserName| match wanted {
        UserName::Name(name) => row.first() == Some(name),
        UserName::Id(id) => row.get(2).and_then(|t| t.parse::<u32>().ok()) == Some(*id),
    };
    let number = |row: &[String], at: usize| {
        row.get(at).and_then(|t| t.parse::<u32>().ok()).filter(|n| *n != u32::MAX)
    };
    let row = users.iter().find(|row| matches(row, &spec.user));
    let uid = match (&spec.user, row.and_then(|r| number(r, 2))) {
        (UserName::Id(id), _) => *id,
        (UserName::Name(_), Some(uid)) => uid,
        (UserName::Name(name), None) => {
            return Err(Error::config("config.User", format!("no user {name:?} in the image's /etc/passwd")));
        }
    };
    let gid = match &spec.group {
        None => row.and_then(|r| number(r, 3)).unwrap_or(0),
        Some(UserName::Id(id)) => *id,
        Some(wanted @ UserName::Name(name)) => {
            groups.iter().find(|row| matches(row, wanted)).and_then(|r| number(r, 2)).ok_or_else(|| {
                Error::config("config.User", format!("no group {name:?} in the image's /etc/group"))
            })?
        }
    };
    // A group that was named replaces the supplementary ones, as in Docker.
    let name = row.and_then(|r| r.first());
    let supplementary = match (&spec.group, name) {
        (None, Some(name)) => groups
            .iter()
            .filter(|row| row.get(3).is_some_and(|members| members.split(',').any(|m| m == name)))
            .filter_map(|row| number(row, 2))
            .take(MAX_GROUPS)
            .collect(),
        _ => Vec::new(),
    };
    let home = row.and_then(|r| r.get(5)).filter(|h| h.starts_with('/')).cloned();
    Ok(ResolvedUser { uid, gid, groups: supplementary, home })
}

/// Most supplementary groups of a process that are set.
const MAX_GROUPS: usize = 64;

fn read(root: &Path, name: &str) -> Result<String> {
    let what = || format!("{name} in {}", root.display());
    let dir = openat(CWD, root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|e| Error::io(root.display().to_string(), e))?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
    let fd = match openat2(&dir, name, flags, Mode::empty(), resolve) {
        Ok(fd) => fd,
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP) => {
            return Ok(String::new());
        }
        Err(e) => return Err(Error::io(what(), e)),
    };
    let file = File::from(fd);
    if !file.metadata().map_err(|e| Error::io(what(), e))?.is_file() {
        return Ok(String::new());
    }
    let mut bytes = Vec::new();
    file.take(MAX_PASSWD_BYTES + 1).read_to_end(&mut bytes).map_err(|e| Error::io(what(), e))?;
    if bytes.len() as u64 > MAX_PASSWD_BYTES {
        return Err(Error::Limit {
            what: what(),
            name: "MAX_PASSWD_BYTES",
            limit: MAX_PASSWD_BYTES,
            unit: "bytes",
        });
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
