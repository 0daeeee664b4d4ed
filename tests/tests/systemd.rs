//! The node on a real systemd: workloads are its services.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;

use horchestra_tests::{Machine, Server, airway, images, root, wait_for};

const APP: &str = "application.orch.ks-tool.dev";
const UNIT: &str = "horchestra-default_web.service";

/// A machine with the image on its disk.
fn boot() -> Option<Machine> {
    let machine = Machine::boot()?;
    copy(&images(), &machine.path("images").1);
    Some(machine)
}

fn copy(from: &Path, to: &Path) {
    let done = std::process::Command::new("cp").arg("-r").args([from, to]).status().unwrap();
    assert!(done.success());
}

fn start(machine: &Machine) -> Server {
    let images = machine.path("images").0.display().to_string();
    Server::start_in(machine, "data", &["--images", &images])
}

fn web(more: &str) -> String {
    format!(
        "apiVersion: orch.ks-tool.dev/v1\nkind: Application\nmetadata: {{name: web}}\nspec:\n  image: busybox\n{more}"
    )
}

fn phase(server: &Server, phase: &str) {
    server.expect(&["get", APP, "web", "-o", "jsonpath={.status.phase}"], phase);
}

fn property(machine: &Machine, name: &str) -> String {
    machine.ask(&["systemctl", "show", UNIT, "--value", "--property", name]).unwrap().trim().to_owned()
}

fn journal(machine: &Machine) -> String {
    machine
        .ask(&["journalctl", "--no-pager", "-o", "cat", "_TRANSPORT=stdout", "HORCHESTRA_UNIT=default_web"])
        .unwrap()
}

#[test]
fn workloads_outlive_the_server_and_are_found_again() {
    let Some(machine) = boot() else { return };
    let server = start(&machine);
    server.apply(&web("  command: [sh, -c, 'echo one; exec sleep 1000000']\n"));
    phase(&server, "Running");
    let (pid, started) =
        (property(&machine, "MainPID"), property(&machine, "ExecMainStartTimestampMonotonic"));
    server.kill();
    assert_eq!(property(&machine, "ActiveState"), "active");

    let server = start(&machine);
    phase(&server, "Running");
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!(
        (property(&machine, "MainPID"), property(&machine, "ExecMainStartTimestampMonotonic")),
        (pid.clone(), started),
        "the same run goes on"
    );
    // Another revision replaces it.
    server.apply(&web("  command: [sh, -c, 'echo two; exec sleep 1000000']\n"));
    wait_for("the new revision", || match journal(&machine) {
        text if text == "one\ntwo\n" => Ok(()),
        text => Err(text),
    });
    assert_ne!(property(&machine, "MainPID"), pid);

    // What is deleted while nobody looks is ended by the next one that does.
    server.ask(&["delete", APP, "web", "--wait=false"]).unwrap();
    server.kill();
    let server = start(&machine);
    wait_for("the unit is gone", || match property(&machine, "LoadState").as_str() {
        "not-found" => Ok(()),
        other => Err(other.to_owned()),
    });
    server.expect(&["get", APP, "-o", "name"], "");
    let roots = machine.path("data/node/roots").1;
    wait_for("nothing of it is left", || match std::fs::read_dir(&roots).unwrap().count() {
        0 => Ok(()),
        n => Err(format!("{n} roots")),
    });
}

#[test]
fn a_workload_is_hardened_and_its_secrets_are_nobodys() {
    let Some(machine) = boot() else { return };
    let server = start(&machine);
    server.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {key: hunter-two}\n");
    server.apply(&web(
        "  secretEnv: {PASSWORD: {name: s, key: key}}\n  env: {QUOTED: 'a \"b\" \\ $HOME %n'}\n  \
         securityContext: {runAsUser: 12345, runAsGroup: 12346}\n  \
         command: [sh, -c, 'echo \"$PASSWORD|$QUOTED\"; echo $1; exec sleep 1000000', sh, '$HOME %n']\n",
    ));
    phase(&server, "Running");
    wait_for("its words", || match journal(&machine) {
        text if text.starts_with("hunter-two|a \"b\" \\ $HOME %n\n") => Ok(()),
        text => Err(text),
    });
    // Nothing of the secret where everybody may look.
    for words in [&["systemctl", "show", UNIT][..], &["systemctl", "cat", UNIT]] {
        let text = machine.ask(words).unwrap();
        assert!(text.contains("default_web") && !text.contains("hunter-two"), "{text}");
    }
    for (name, value) in [
        ("NoNewPrivileges", "yes"),
        ("PrivateDevices", "yes"),
        ("ProtectKernelTunables", "yes"),
        ("RestrictNamespaces", "yes"),
        ("DevicePolicy", "closed"),
        ("Slice", "horchestra.slice"),
        ("User", "12345"),
        ("Group", "12346"),
    ] {
        assert_eq!(property(&machine, name), value, "{name}");
    }
    let status = format!("/proc/{}/status", property(&machine, "MainPID"));
    let status = machine.ask(&["cat", &status]).unwrap();
    let line = |key: &str| {
        let line = status.lines().find(|l| l.starts_with(key)).unwrap_or_default();
        line.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("Uid:"), "12345 12345 12345 12345");
    assert_eq!(line("Gid:"), "12346 12346 12346 12346");
    assert_eq!(
        (line("CapEff:"), line("NoNewPrivs:"), line("Seccomp:")),
        ("0000000000000000".into(), "1".into(), "2".into())
    );
    // As good as systemd itself calls "OK", measured by its own tool.
    machine.ask(&["systemd-analyze", "security", "--threshold=35", UNIT]).unwrap();
}

#[test]
fn ends_are_seen_with_their_reason_and_restarts_are_counted() {
    let Some(machine) = boot() else { return };
    let server = start(&machine);
    let status = |path: &str| server.ask(&["get", APP, "web", "-o", &format!("jsonpath={{.status.{path}}}")]);
    server.apply(&web("  restartPolicy: Never\n  command: [sh, -c, 'exit 3']\n"));
    phase(&server, "Failed");
    assert_eq!(status("exitCode").unwrap(), "3");
    assert_eq!(status("message").unwrap(), "it exited with code 3");

    server.apply(&web("  restartPolicy: Never\n  command: [sh, -c, 'exit 0']\n"));
    phase(&server, "Succeeded");

    server.apply(&web("  restartPolicy: Always\n  command: [sh, -c, 'exit 4']\n"));
    wait_for("two restarts", || match status("restarts")?.parse::<u32>() {
        Ok(n) if n >= 2 => Ok(()),
        _ => Err(status("message")?),
    });
    assert_eq!(status("exitCode").unwrap(), "4");

    server.apply(&web("  restartPolicy: Never\n  command: [no-such-program]\n"));
    wait_for("the reason", || match status("message")? {
        text if text.contains("no-such-program") && text.contains("PATH") => Ok(()),
        text => Err(text),
    });
    let limitations = ["get", "nodes.orch.ks-tool.dev", "-o", "jsonpath={.items[0].status.supervisor}"];
    server.expect(&limitations, "systemd");
}

#[test]
fn the_examples_run_on_it() {
    let Some(machine) = boot() else { return };
    let server = start(&machine);
    for name in ["pipeline", "app"] {
        // The modules are read inside, where the whole checkout is to be seen.
        server.apply(&airway(name));
    }
    server.ask(&["wait", "--for=condition=Ready", "airway", "--all", "--timeout=120s"]).unwrap();
    for name in ["pipeline", "app"] {
        let path = root().join("examples").join(name).join("instance.yaml");
        server.apply(&std::fs::read_to_string(path).unwrap());
    }
    server
        .expect(&["get", "pipeline", "hello", "-o", "jsonpath={.status.message}"], "all jobs have completed");
    server.expect(
        &["get", "apps.examples.com", "shop", "-o", "jsonpath={.status.message}"],
        "deployed and ready",
    );
    let units = machine
        .ask(&["systemctl", "list-units", "--plain", "--no-legend", "horchestra-default_shop*"])
        .unwrap();
    assert!(units.contains("active running"), "{units}");
}
