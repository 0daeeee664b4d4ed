//! Units with real processes.
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    reason = "each test program uses its own part"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use horchestra_oci::{ImagePath, ResolvedUser, StopSignal};
use horchestra_systemd::{
    BackOff, LogLimits, LogOptions, ProcessOptions, ProcessSupervisor, Restart, Root, Security, Supervisor,
    Unit, UnitLimits, UnitName, UnitState,
};

pub fn options(dir: &Path) -> ProcessOptions {
    let ms = Duration::from_millis;
    ProcessOptions {
        launcher: Some(PathBuf::from(env!("CARGO_BIN_EXE_horchestra-launch"))),
        back_off: BackOff { initial: ms(50), max: ms(200), reset_after: Duration::from_secs(60) },
        logs: LogLimits::default(),
        ..ProcessOptions::new(dir)
    }
}

pub fn supervisor(dir: &Path) -> ProcessSupervisor {
    ProcessSupervisor::new(options(dir)).unwrap()
}

/// A shell script on the node itself.
pub fn script(name: &str, text: &str) -> Unit {
    Unit {
        name: UnitName::new(name).unwrap(),
        revision: "1".into(),
        argv: ["/bin/sh", "-c", text].map(str::to_owned).to_vec(),
        env: Vec::new(),
        root: Root::Host,
        working_dir: ImagePath::new("/").unwrap(),
        user: ResolvedUser {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            ..ResolvedUser::default()
        },
        mounts: Vec::new(),
        restart: Restart::NEVER,
        stop_signal: StopSignal::TERM,
        grace: Duration::from_secs(5),
        deadline: None,
        limits: UnitLimits::default(),
        security: Security::default(),
    }
}

/// Waits until a unit is as it should be.
pub async fn until(s: &dyn Supervisor, name: &str, what: impl Fn(&UnitState) -> bool) -> UnitState {
    for _ in 0..2000 {
        if let Some(state) = s.list().await.into_iter().find(|u| u.name.as_str() == name && what(u)) {
            return state;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{name} never came there: {:?}", s.list().await);
}

pub async fn ended(s: &dyn Supervisor, name: &str) -> UnitState {
    until(s, name, |u| u.phase.is_final()).await
}

pub async fn log(s: &dyn Supervisor, name: &str, options: LogOptions) -> String {
    let mut stream = s.logs(&UnitName::new(name).unwrap(), options).await.unwrap();
    let mut all = Vec::new();
    while let Some(chunk) = stream.recv().await {
        all.extend(chunk);
    }
    String::from_utf8(all).unwrap()
}

pub fn alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|s| !s.rsplit(')').next().unwrap().trim_start().starts_with('Z'))
}

/// A root file system with a shell and what it needs, taken from this machine.
pub fn shell_root(dir: &Path) {
    std::fs::create_dir_all(dir.join("bin")).unwrap();
    for program in ["/bin/sh", "/bin/cat", "/bin/id", "/bin/ls", "/bin/sleep"] {
        let real = std::fs::canonicalize(program).unwrap();
        std::fs::copy(&real, dir.join(program.trim_start_matches('/'))).unwrap();
        let out = Command::new("ldd").arg(&real).output().unwrap();
        for word in String::from_utf8_lossy(&out.stdout).split_whitespace().filter(|w| w.starts_with('/')) {
            let to = dir.join(word.trim_start_matches('/'));
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            std::fs::copy(word, to).unwrap();
        }
    }
}
