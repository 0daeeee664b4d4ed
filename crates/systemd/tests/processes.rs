//! What the process supervisor does with real processes: how they start, end, are stopped and come back.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests say what is wrong by panicking")]

mod common;

use std::time::{Duration, Instant};

use common::*;
use horchestra_oci::{EnvVar, ImagePath, StopSignal};
use horchestra_systemd::{
    Exit, FailedWhy, Isolation, LogLimits, LogOptions, Mount, MountSource, ProcessOptions, ProcessSupervisor,
    Restart, Root, Supervisor, Unit, UnitName, UnitPhase,
};

fn name(text: &str) -> UnitName {
    UnitName::new(text).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_codes_and_signals_are_reported_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let s = supervisor(dir.path());
    for (unit, exit, phase) in [
        (script("good", "exit 0"), Exit::Code(0), UnitPhase::Succeeded),
        (script("bad", "exit 42"), Exit::Code(42), UnitPhase::Failed { why: FailedWhy::Retries }),
        (script("killed", "kill -9 $$"), Exit::Signal(9), UnitPhase::Failed { why: FailedWhy::Retries }),
    ] {
        let id = unit.name.clone();
        s.start(unit).await.unwrap();
        let state = ended(&s, id.as_str()).await;
        assert_eq!(state.last_exit, Some(exit), "{id}");
        assert_eq!(state.phase, phase, "{id}");
        assert!(state.started.unwrap() <= state.finished.unwrap());
    }
    let mut missing = script("missing", "");
    missing.argv = vec!["/no/such/program".into()];
    s.start(missing).await.unwrap();
    let state = ended(&s, "missing").await;
    match state.last_exit {
        Some(Exit::NotStarted(why)) => assert!(why.contains("/no/such/program"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_is_the_units_own() {
    let dir = tempfile::tempdir().unwrap();
    let s = supervisor(dir.path());
    let mut unit = script("env", "cat /proc/self/environ; cat; pwd");
    unit.env = vec![EnvVar::new("A", "%n ${B} \"x\"").unwrap(), EnvVar::new("PATH", "/bin").unwrap()];
    unit.working_dir = ImagePath::new("/tmp").unwrap();
    s.start(unit).await.unwrap();
    ended(&s, "env").await;
    let text = log(&s, "env", LogOptions::default()).await;
    let (env, rest) = text.rsplit_once('\0').unwrap();
    let mut vars: Vec<_> = env.split('\0').filter(|v| !v.starts_with("PWD=")).collect();
    vars.sort_unstable();
    assert_eq!(vars, ["A=%n ${B} \"x\"", "PATH=/bin"]);
    assert_eq!(rest, "/tmp\n", "and standard input is empty");
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_retried_with_back_off_as_often_as_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let s = supervisor(dir.path());
    let mut changes = s.watch();
    let begin = Instant::now();
    s.start(Unit { restart: Restart::OnFailure { retries: Some(3) }, ..script("r", "echo run; exit 3") })
        .await
        .unwrap();
    let state = ended(&s, "r").await;
    assert_eq!((state.restarts, state.last_exit), (3, Some(Exit::Code(3))));
    // 50, 100 and 200 ms.
    assert!(begin.elapsed() >= Duration::from_millis(350));
    assert_eq!(log(&s, "r", LogOptions::default()).await, "run\n".repeat(4));
    let mut waits = 0;
    while let Ok(change) = changes.try_recv() {
        waits += usize::from(matches!(change.phase, UnitPhase::BackOff { .. }));
    }
    assert_eq!(waits, 3, "every wait is to be seen");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_that_succeeds_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    let s = supervisor(dir.path());
    let flag = dir.path().join("flag");
    let text = format!("test -e {0} && exit 0; : > {0}; exit 1", flag.display());
    s.start(Unit { restart: Restart::OnFailure { retries: None }, ..script("r", &text) }).await.unwrap();
    let state = ended(&s, "r").await;
    assert_eq!((state.phase, state.restarts), (UnitPhase::Succeeded, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn always_means_also_after_success() {
    let dir = tempfile::tempdir().unwrap();
    let s = supervisor(dir.path());
    s.start(Unit { restart: Restart::Always, ..script("a", "exit 0") }).await.unwrap();
    until(&s, "a", |u| u.restarts >= 2).await;
    s.stop(&name("a")).await.unwrap();
    assert!(s.list().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_asks_first() {
    let dir = tempfile::tempdir().unwrap();
    let s = supervisor(dir.path());
    let mut unit = script("polite", "trap 'echo bye; exit 7' INT; echo up; while :; do sleep 0.05; done");
    unit.stop_signal = StopSignal::new("SIGINT").unwrap();
    unit.restart = Restart::Always;
    s.start(unit).await.unwrap();
    while log(&s, "polite", LogOptions::default()).await.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    s.stop(&name("polite")).await.unwrap();
    assert_eq!(log(&s, "polite", LogOptions::default()).await, "up\nbye\n");
    s.stop(&name("polite")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_kills_the_whole_group_after_its_grace() {
    let dir = tempfile::tempdir().unwrap();
    let s = supervisor(dir.path());
    let mut unit = script(
        "deaf",
        "trap '' TERM; (trap '' TERM; echo $$; sleep 100) & sleep 100 & echo $!; wait; sleep 100",
    );
    unit.grace = Duration::from_millis(300);
    s.start(unit).await.unwrap();
    let pids: Vec<u32> = loop {
        let text = log(&s, "deaf", LogOptions::default()).await;
        let pids: Vec<u32> = text.lines().map(|l| l.parse().unwrap()).collect();
        if pids.len() == 2 {
            break pids;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    let begin = Instant::now();
    s.stop(&name("deaf")).await.unwrap();
    let took = begin.elapsed();
    assert!(took >= Duration::from_millis(300) && took < Duration::from_secs(3), "{took:?}");
    assert!(pids.iter().all(|p| !alive(*p)));
}

#[tokio::test(flavor = "multi_thread")]
async fn children_that_outlive_their_parent_are_ended_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let s = supervisor(dir.path());
    s.start(script("parent", "sleep 100 & echo $!; exit 0")).await.unwrap();
    let state = ended(&s, "parent").await;
    assert_eq!(state.phase, UnitPhase::Succeeded);
    let pid: u32 = log(&s, "parent", LogOptions::default()).await.trim().parse().unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!alive(pid));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    let s = supervisor(dir.path());
    let mut unit = script("late", "sleep 100");
    unit.deadline = Some(Duration::from_millis(200));
    unit.restart = Restart::OnFailure { retries: None };
    s.start(unit).await.unwrap();
    let state = ended(&s, "late").await;
    assert_eq!(state.phase, UnitPhase::Failed { why: FailedWhy::Deadline });
    assert_eq!(state.last_exit, Some(Exit::Signal(15)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_revision_changes_nothing_another_replaces() {
    let dir = tempfile::tempdir().unwrap();
    let s = supervisor(dir.path());
    let pid = |state: &horchestra_systemd::UnitState| match state.phase {
        UnitPhase::Running { pid } => Some(pid),
        _ => None,
    };
    s.start(script("u", "sleep 100")).await.unwrap();
    let first = pid(&until(&s, "u", |u| pid(u).is_some()).await);
    s.start(script("u", "something else")).await.unwrap();
    assert_eq!(pid(&until(&s, "u", |u| pid(u).is_some()).await), first);
    s.start(Unit { revision: "2".into(), ..script("u", "sleep 100") }).await.unwrap();
    let second = pid(&until(&s, "u", |u| pid(u).is_some() && u.revision == "2").await);
    assert_ne!(second, first);
    assert!(!alive(first.unwrap()));
    s.shutdown().await;
    assert!(!alive(second.unwrap()));
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_bounded_and_can_be_asked_for_in_parts() {
    let dir = tempfile::tempdir().unwrap();
    let mut small = options(dir.path());
    small.logs = LogLimits { file_bytes: 4096, files: 3 };
    let s = ProcessSupervisor::new(small).unwrap();
    s.start(script(
        "log",
        "i=0; while [ $i -lt 1000 ]; do echo line $i; i=$((i+1)); done; printf no-newline",
    ))
    .await
    .unwrap();
    ended(&s, "log").await;
    let all = log(&s, "log", LogOptions::default()).await;
    assert!(all.ends_with("line 998\nline 999\nno-newline\n"), "{all}");
    assert!(all.len() < 3 * 4096 && all.lines().count() > 80);
    let files: Vec<_> = std::fs::read_dir(dir.path().join("logs/log")).unwrap().map(|f| f.unwrap()).collect();
    assert_eq!(files.len(), 3);
    assert!(files.iter().all(|f| f.metadata().unwrap().len() <= 4096));
    let two = LogOptions { tail: Some(2), ..LogOptions::default() };
    assert_eq!(log(&s, "log", two.clone()).await, "line 999\nno-newline\n");
    let times = log(&s, "log", LogOptions { timestamps: true, ..two }).await;
    let (time, text) = times.lines().next().unwrap().split_once(' ').unwrap();
    assert_eq!((text, time.len(), time.ends_with('Z')), ("line 999", 30, true));
    let since = Some(jiff::Timestamp::now());
    assert_eq!(log(&s, "log", LogOptions { since, ..LogOptions::default() }).await, "");
    let bytes = LogOptions { limit_bytes: Some(10), tail: Some(2), ..LogOptions::default() };
    assert_eq!(log(&s, "log", bytes).await, "line 999\nn");
    s.remove(&name("log")).await.unwrap();
    assert!(s.logs(&name("log"), LogOptions::default()).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn following_a_log_ends_with_the_unit_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut small = options(dir.path());
    small.logs = LogLimits { file_bytes: 2000, files: 50 };
    let s = ProcessSupervisor::new(small).unwrap();
    let text = "i=0; while [ $i -lt 200 ]; do echo line $i; i=$((i+1)); [ $((i%20)) = 0 ] && sleep 0.02; done; exit 0";
    s.start(script("log", text)).await.unwrap();
    let followed = log(&s, "log", LogOptions { follow: true, ..LogOptions::default() }).await;
    let expected: String = (0..200).map(|i| format!("line {i}\n")).collect();
    assert_eq!(followed, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_lines_and_both_streams() {
    let dir = tempfile::tempdir().unwrap();
    let s = supervisor(dir.path());
    s.start(script("log", "head -c 100000 /dev/zero | tr '\\0' x; echo; echo oops >&2")).await.unwrap();
    ended(&s, "log").await;
    let text = log(&s, "log", LogOptions::default()).await;
    // The streams are two pipes: a line of one can stand between two parts of a line of the other.
    assert_eq!(text.matches('x').count(), 100_000);
    assert!(text.contains("oops\n"));
    assert!(text.replace("oops\n", "").contains(&"x".repeat(100_000)));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_supervisor_per_directory() {
    let dir = tempfile::tempdir().unwrap();
    let _s = supervisor(dir.path());
    let error = ProcessSupervisor::new(options(dir.path())).unwrap_err().to_string();
    assert!(error.contains("another supervisor"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_launcher_it_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let s = ProcessSupervisor::new(ProcessOptions { launcher: None, ..options(dir.path()) }).unwrap();
    assert!(matches!(s.capabilities().isolation, Isolation::None(_)));
    let error = s.start(script("u", "exit 0")).await.unwrap_err().to_string();
    assert!(error.contains("run_if_asked"), "{error}");
    let wrong = ProcessOptions {
        launcher: Some("/bin/false".into()),
        state_dir: dir.path().join("b"),
        ..options(dir.path())
    };
    let s = ProcessSupervisor::new(wrong).unwrap();
    match &s.capabilities().isolation {
        Isolation::None(why) => assert!(why.contains("no launcher"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn leftovers_of_a_crash_are_ended_and_strangers_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let s = supervisor(dir.path());
    s.start(script("u", "sleep 1000")).await.unwrap();
    let state = until(&s, "u", |u| matches!(u.phase, UnitPhase::Running { .. })).await;
    let UnitPhase::Running { pid } = state.phase else { panic!("{state:?}") };
    let record = std::fs::read(dir.path().join("run/u.json")).unwrap();
    // As after a crash: the record and the process are there, and nobody knows of them.
    let crashed = tempfile::tempdir().unwrap();
    std::fs::create_dir(crashed.path().join("run")).unwrap();
    std::fs::write(crashed.path().join("run/u.json"), &record).unwrap();
    // And one whose number belongs to somebody else by now: us.
    let mut stranger = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let text = String::from_utf8(record)
        .unwrap()
        .replace(&format!("\"pid\":{pid}"), &format!("\"pid\":{}", stranger.id()));
    std::fs::write(crashed.path().join("run/stranger.json"), text).unwrap();
    assert!(alive(pid));
    let _second = supervisor(crashed.path());
    let state = ended(&s, "u").await;
    assert_eq!(state.last_exit, Some(Exit::Signal(9)));
    assert!(alive(stranger.id()));
    assert_eq!(std::fs::read_dir(crashed.path().join("run")).unwrap().count(), 0);
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_sees_its_own_root_only() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    shell_root(&image);
    std::fs::write(image.join("hello"), "from the image\n").unwrap();
    // A mount point that is a link out of the image.
    std::os::unix::fs::symlink("/etc", image.join("proc")).unwrap();
    std::fs::remove_file(image.join("proc")).unwrap();
    let s = supervisor(&dir.path().join("state"));
    if let Isolation::None(why) = &s.capabilities().isolation {
        eprintln!("skipped: {why}");
        return;
    }
    let volume = dir.path().join("volume");
    std::fs::create_dir(&volume).unwrap();
    std::fs::write(volume.join("data"), "kept\n").unwrap();
    let shared = s.capabilities().shared_roots;
    let mounts = !matches!(s.capabilities().isolation, Isolation::RootDirectory);
    let mut unit = script(
        "u",
        "cat /hello; echo > /written; ls /; cat /data/data; echo more > /data/more; echo x > /dev/null; echo y > /scratch/y; ls /dev",
    );
    unit.env = vec![EnvVar::new("PATH", "/bin").unwrap()];
    unit.root = if shared { Root::Shared(image.clone()) } else { Root::Private(image.clone()) };
    if mounts {
        let at = |p: &str| ImagePath::new(p).unwrap();
        unit.mounts = vec![
            Mount { path: at("/data"), source: MountSource::Bind { from: volume.clone(), read_only: false } },
            Mount { path: at("/scratch"), source: MountSource::Tmpfs { size: Some(1 << 20) } },
        ];
    }
    s.start(unit).await.unwrap();
    let state = ended(&s, "u").await;
    let text = log(&s, "u", LogOptions::default()).await;
    assert_eq!(state.last_exit, Some(Exit::Code(0)), "{text}");
    assert!(text.starts_with("from the image\n"), "{text}");
    assert!(!text.contains("etc\n") && !text.contains("home\n"), "{text}");
    if mounts {
        assert!(text.contains("kept\n") && text.contains("null\n") && !text.contains("vda"), "{text}");
        assert_eq!(std::fs::read_to_string(volume.join("more")).unwrap(), "more\n");
    }
    assert_eq!(image.join("written").exists(), !shared, "what is written stays out of a shared image");
    s.remove(&name("u")).await.unwrap();
    assert!(!dir.path().join("state/units/u").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn each_run_begins_with_the_image_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    shell_root(&image);
    let s = supervisor(&dir.path().join("state"));
    if !s.capabilities().shared_roots {
        eprintln!("skipped: {:?}", s.capabilities());
        return;
    }
    let mut unit = script("u", "test -e /mark && exit 9; echo > /mark; exit 1");
    unit.root = Root::Shared(image);
    unit.restart = Restart::OnFailure { retries: Some(1) };
    s.start(unit).await.unwrap();
    let state = ended(&s, "u").await;
    assert_eq!((state.restarts, state.last_exit), (1, Some(Exit::Code(1))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_of_the_image_has_no_privileges() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    shell_root(&image);
    let s = supervisor(&dir.path().join("state"));
    if !matches!(s.capabilities().isolation, Isolation::Mounts | Isolation::UserNamespace) {
        eprintln!("skipped: {:?}", s.capabilities());
        return;
    }
    let mut unit = script("u", "id -u; id -g; cat /proc/self/status");
    unit.root = Root::Private(image);
    unit.user.uid = 4711;
    unit.user.gid = 4712;
    s.start(unit).await.unwrap();
    ended(&s, "u").await;
    let text = log(&s, "u", LogOptions::default()).await;
    assert!(text.starts_with("4711\n4712\n"), "{text}");
    for line in ["CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "NoNewPrivs:\t1"] {
        assert!(text.contains(line), "{line} in {text}");
    }
    let bounding = text.lines().find_map(|l| l.strip_prefix("CapBnd:\t")).unwrap();
    let bounding = u64::from_str_radix(bounding, 16).unwrap();
    assert_eq!(bounding & (1 << 21), 0, "CAP_SYS_ADMIN can never come back");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mount_point_that_is_a_link_stays_inside() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    shell_root(&image);
    let outside = dir.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, image.join("link")).unwrap();
    let s = supervisor(&dir.path().join("state"));
    if !matches!(s.capabilities().isolation, Isolation::Mounts | Isolation::UserNamespace) {
        eprintln!("skipped: {:?}", s.capabilities());
        return;
    }
    let mut unit = script("u", "echo x > /link/x");
    unit.root = Root::Private(image.clone());
    unit.mounts = vec![Mount {
        path: ImagePath::new("/link/deep").unwrap(),
        source: MountSource::Tmpfs { size: None },
    }];
    s.start(unit).await.unwrap();
    ended(&s, "u").await;
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_of_forgotten_units_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    {
        let s = supervisor(dir.path());
        for unit in ["a", "b"] {
            s.start(script(unit, "echo x")).await.unwrap();
            ended(&s, unit).await;
        }
    }
    let s = supervisor(dir.path());
    s.prune(&[name("a")].into()).await.unwrap();
    assert_eq!(log(&s, "a", LogOptions::default()).await, "x\n");
    assert!(s.logs(&name("b"), LogOptions::default()).await.is_err());
}
