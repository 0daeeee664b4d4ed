//! A machine that systemd runs, booted in a container over this one's files.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a boot may take.
const BOOT: Duration = Duration::from_secs(60);
/// The directory inside that is on a real disk: an overlay cannot be the upper layer of another.
const STATE: &str = "/var/lib/horchestra";

/// A booted container. It ends with the value.
#[derive(Debug)]
pub struct Machine {
    directory: tempfile::TempDir,
    nspawn: Child,
    leader: u32,
    /// Machines would share one control group, so there is one at a time.
    _turn: std::fs::File,
}

fn run(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|e| format!("{command:?}: {e}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)))
}

impl Machine {
    /// Boots one; none where this machine cannot, which is said on stderr. Where tests must not be
    /// left out (the variable `CI` is set), it is a failure.
    ///
    /// # Panics
    /// Where it must be possible and is not.
    pub fn boot() -> Option<Self> {
        match Self::try_boot() {
            Ok(machine) => Some(machine),
            Err(why) => {
                assert!(std::env::var_os("CI").is_none(), "no machine can be booted: {why}");
                eprintln!("SKIPPED: no machine can be booted: {why}");
                None
            }
        }
    }

    fn try_boot() -> Result<Self, String> {
        if run(Command::new("id").arg("-u"))?.trim() != "0" {
            return Err("it takes root's rights".into());
        }
        run(Command::new("systemd-nspawn").arg("--version"))?;
        let turn = std::fs::File::create(std::env::temp_dir().join("horchestra-machine.lock"));
        let turn = turn.and_then(|file| file.lock().map(|()| file)).map_err(|e| e.to_string())?;
        let directory = tempfile::tempdir().map_err(|e| e.to_string())?;
        let at = |name: &str| directory.path().join(name);
        for name in ["upper", "work", "root", "state"] {
            std::fs::create_dir(at(name)).map_err(|e| e.to_string())?;
        }
        let layers =
            format!("lowerdir=/,upperdir={},workdir={}", at("upper").display(), at("work").display());
        run(Command::new("mount").args(["-t", "overlay", "overlay", "-o", &layers]).arg(at("root")))?;
        let name = directory.path().file_name().unwrap_or_default().to_string_lossy();
        let log = std::fs::File::create(at("boot.log")).map_err(|e| e.to_string())?;
        let nspawn = Command::new("systemd-nspawn")
            .args([
                "--boot",
                "--register=no",
                "--keep-unit",
                "--link-journal=no",
                "--console=pipe",
                "--quiet",
            ])
            .arg(format!("--machine=horchestra{}", name.replace('.', "-")))
            .arg("-D")
            .arg(at("root"))
            .arg(format!("--bind={}:{STATE}", at("state").display()))
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(|e| e.to_string())?)
            .stderr(log)
            .spawn()
            .map_err(|e| e.to_string())?;
        let mut machine = Self { leader: 0, nspawn, directory, _turn: turn };
        let started = Instant::now();
        loop {
            if let Some(leader) = children(machine.nspawn.id()).first() {
                machine.leader = *leader;
                if run(machine.command("systemctl").arg("is-system-running")).is_ok() {
                    return Ok(machine);
                }
            }
            if started.elapsed() > BOOT {
                let log = std::fs::read_to_string(machine.directory.path().join("boot.log"));
                return Err(log.unwrap_or_default());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// A program to run inside.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.leader.to_string(), "-m", "-u", "-i", "-p", "-n", "-C"]).arg(program);
        command
    }

    /// What a program says inside.
    ///
    /// # Errors
    /// What it says where it fails.
    pub fn ask(&self, words: &[&str]) -> Result<String, String> {
        let (program, arguments) = words.split_first().ok_or("no program")?;
        run(self.command(program).args(arguments))
    }

    /// A path of the machine's disk, as it is seen inside and outside.
    pub fn path(&self, name: &str) -> (PathBuf, PathBuf) {
        (Path::new(STATE).join(name), self.directory.path().join("state").join(name))
    }
}

/// The children of a process.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let text = run(Command::new("pgrep").args(["-P", &pid.to_string()])).unwrap_or_default();
    text.lines().filter_map(|line| line.trim().parse().ok()).collect()
}

impl Drop for Machine {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let journal = self.ask(&["journalctl", "--no-pager", "-o", "short-precise", "-n", "200"]);
            println!("{}", journal.unwrap_or_else(|e| e));
        }
        // Its first process outlives what started it.
        if self.leader != 0 {
            let _ = run(Command::new("kill").args(["-KILL", &self.leader.to_string()]));
        }
        let _ = self.nspawn.kill();
        let _ = self.nspawn.wait();
        let _ = run(Command::new("umount").arg("-l").arg(self.directory.path().join("root")));
    }
}
