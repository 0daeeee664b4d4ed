//! The environment of a unit, as a file in memory. A unit's properties can be read by everybody on
//! the machine, and what is in an environment may be secret.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use horchestra_oci::EnvVar;

use crate::{Error, Result, UnitName};

/// Where the files are: memory, for root alone.
const DIRECTORY: &str = "/run/horchestra/environment";

/// The file of a unit.
pub(super) fn path(name: &UnitName) -> PathBuf {
    Path::new(DIRECTORY).join(name.as_str())
}

/// Writes the file of a unit; systemd reads it whenever it starts the unit.
pub(super) fn write(name: &UnitName, env: &[EnvVar]) -> Result<PathBuf> {
    let path = path(name);
    let failed = |e: std::io::Error| Error::io(path.display().to_string(), e);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(DIRECTORY).map_err(failed)?;
    let part = path.with_file_name(format!(".{name}.part"));
    let _ = std::fs::remove_file(&part);
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part).map_err(failed)?;
    file.write_all(text(env).as_bytes()).map_err(failed)?;
    std::fs::rename(&part, &path).map_err(failed)?;
    Ok(path)
}

/// Removes the file of a unit.
pub(super) fn remove(name: &UnitName) -> Result<()> {
    match std::fs::remove_file(path(name)) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io(path(name).display().to_string(), e))
        }
        _ => Ok(()),
    }
}

/// In the syntax of `EnvironmentFile=`: between double quotes everything stands for itself, but for
/// what a backslash stands before. Source: systemd.exec(5).
fn text(env: &[EnvVar]) -> String {
    let mut text = String::new();
    for var in env {
        text.push_str(var.name());
        text.push_str("=\"");
        for c in var.value().chars() {
            if matches!(c, '"' | '\\' | '`' | '$') {
                text.push('\\');
            }
            text.push(c);
        }
        text.push_str("\"\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_between_quotes() {
        let env = [EnvVar::new("A", "plain text").unwrap(), EnvVar::new("B", "a\"b\\c$d`e").unwrap()];
        assert_eq!(text(&env), "A=\"plain text\"\nB=\"a\\\"b\\\\c\\$d\\`e\"\n");
    }
}
