//! The house: which room may use which.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// What each room may use of the others. A room that is not here is a mistake too.
const ARROWS: [(&str, &[&str]); 12] = [
    ("horchestra-core", &[]),
    ("horchestra-api", &["core"]),
    ("horchestra-flight", &["core"]),
    ("horchestra-oci", &["core"]),
    ("horchestra-runtime", &["core"]),
    ("horchestra-wasm", &["core", "flight"]),
    ("horchestra-kube", &["core", "runtime"]),
    ("horchestra-atc", &["core", "api", "flight", "runtime", "oci", "wasm"]),
    ("horchestra-controller", &["core", "api", "runtime"]),
    ("horchestra-systemd", &["core", "api", "runtime", "oci"]),
    (
        "horchestra",
        &["core", "api", "flight", "runtime", "oci", "wasm", "kube", "atc", "controller", "systemd"],
    ),
    (
        "horchestra-cli",
        &["", "core", "api", "flight", "runtime", "oci", "wasm", "kube", "atc", "controller", "systemd"],
    ),
];

/// What only one room may depend on, so that the others stay light.
const WALLS: [(&str, &str); 8] = [
    ("wasmtime", "horchestra-wasm"),
    ("wasmi", "horchestra-wasm"),
    ("redb", "horchestra-controller"),
    ("hyper", "horchestra-controller"),
    ("zbus", "horchestra-systemd"),
    ("kube-client", "horchestra-kube"),
    ("tonic", "horchestra-systemd"),
    ("clap", "horchestra-cli"),
];

/// What the pure rooms may not depend on.
const IMPURE: [&str; 5] = ["tokio", "rand", "reqwest", "jiff", "chrono"];

fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(horchestra_tests::root())
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages
        .filter(|p| p["manifest_path"].as_str().unwrap().contains("/crates/"))
        .map(|p| {
            let normal = p["dependencies"].as_array().unwrap().iter().filter(|d| d["kind"].is_null());
            let names = normal.map(|d| d["name"].as_str().unwrap().to_owned()).collect();
            (p["name"].as_str().unwrap().to_owned(), names)
        })
        .collect()
}

#[test]
fn every_room_uses_only_what_it_may() {
    for (room, uses) in dependencies() {
        let allowed = ARROWS.iter().find(|(name, _)| *name == room);
        let allowed =
            allowed.unwrap_or_else(|| panic!("{room} has no place in the house; give it one here")).1;
        for other in uses.iter().filter(|o| *o == "horchestra" || o.starts_with("horchestra-")) {
            let short = other.strip_prefix("horchestra-").unwrap_or("");
            assert!(allowed.contains(&short), "{room} uses {other}, which the house does not allow");
        }
    }
}

#[test]
fn heavy_crates_stay_behind_their_walls() {
    for (room, uses) in dependencies() {
        for (what, owner) in WALLS {
            assert!(!uses.contains(what) || room == owner, "{room} uses {what}; only {owner} may");
        }
    }
}

#[test]
fn the_pure_rooms_have_no_clock_and_no_io() {
    let all = dependencies();
    for room in ["horchestra-core", "horchestra-flight", "horchestra-api"] {
        for what in IMPURE {
            assert!(!all[room].contains(what), "{room} uses {what}");
        }
    }
}

#[test]
fn every_room_says_what_a_registry_wants_to_know() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(horchestra_tests::root())
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    for package in metadata["packages"].as_array().unwrap() {
        if package["publish"].as_array().is_some_and(Vec::is_empty) {
            continue;
        }
        for field in ["description", "license", "documentation", "readme", "repository", "rust_version"] {
            assert!(
                package[field].as_str().is_some_and(|v| !v.is_empty()),
                "{}: {field} is missing",
                package["name"]
            );
        }
    }
}
