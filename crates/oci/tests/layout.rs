//! Layouts: choosing an image, and everything that a layout can lie about.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests say what is wrong by panicking")]

mod common;

use common::*;
use horchestra_oci::{
    Digest, Error, FileSpec, ImageConfig, ImageSpec, Layout, LayoutBuilder, Options, Platform, Selector,
    UserName, resolve_user, unpack,
};
use serde_json::{Value, json};

fn archive() -> Vec<u8> {
    Tar::new().file("a", "x").end()
}

fn manifest(world: &World, change: impl FnOnce(&mut Value)) -> Result<horchestra_oci::Report, Error> {
    let blob = Blob::gzip(&archive());
    let (digest, size) = world.put(&blob.bytes);
    let config = world.config(&[blob.diff_id], json!({}));
    let layer = json!({"mediaType": GZIP, "digest": digest, "size": size});
    let mut manifest = json!({"schemaVersion": 2, "config": config, "layers": [layer]});
    change(&mut manifest);
    let descriptor = world.put_json(MANIFEST, &manifest);
    world.index(json!([descriptor]));
    let image = Layout::open(world.layout_dir())?.image(&Selector::Only, &Platform::host())?;
    unpack(&image.layers, &world.dest(), &options())
}

#[test]
fn manifests_that_lie() {
    let world = World::new();
    manifest(&world, |_| {}).unwrap();
    let zero = format!("sha256:{}", "0".repeat(64));
    type Case = (&'static str, Box<dyn Fn(&mut Value)>, &'static str);
    let cases: [Case; 11] = [
        ("size", Box::new(|m| m["layers"][0]["size"] = json!(5)), "5"),
        ("missing blob", Box::new(move |m| m["layers"][0]["digest"] = json!(zero)), "0000"),
        (
            "media type",
            Box::new(|m| m["layers"][0]["mediaType"] = json!("application/zip")),
            "application/zip",
        ),
        (
            "foreign layer",
            Box::new(|m| {
                m["layers"][0]["mediaType"] =
                    json!("application/vnd.docker.image.rootfs.foreign.diff.tar.gzip")
            }),
            "distributable",
        ),
        ("urls", Box::new(|m| m["layers"][0]["urls"] = json!(["http://x"])), "urls"),
        ("negative size", Box::new(|m| m["layers"][0]["size"] = json!(-1)), "invalid"),
        ("manifest and index", Box::new(|m| m["manifests"] = json!([])), "ambiguous"),
        ("schema 1", Box::new(|m| m["schemaVersion"] = json!(1)), "schemaVersion"),
        ("contradicting type", Box::new(|m| m["mediaType"] = json!(INDEX)), "contradicts"),
        ("no layer for a diff_id", Box::new(|m| m["layers"] = json!([])), "diff_ids"),
        (
            "digest with a path",
            Box::new(|m| m["layers"][0]["digest"] = json!("sha256:../../etc/passwd")),
            "digest",
        ),
    ];
    for (case, change, words) in cases {
        let world = World::new();
        let error = manifest(&world, |m| change(m)).expect_err(case);
        assert!(error.to_string().contains(words), "{case}: {error}");
        assert!(!world.dest().exists(), "{case}");
    }
}

#[test]
fn wrong_bytes_are_never_adopted() {
    for what in ["layer", "diff_id", "config", "manifest"] {
        let world = World::new();
        let mut blob = Blob::gzip(&archive());
        if what == "diff_id" {
            blob.diff_id = Digest::of(b"something else");
        }
        let layer = Digest::of(&blob.bytes);
        let layout = world.image(&[blob]);
        let dir = world.layout_dir().join("blobs/sha256");
        for file in std::fs::read_dir(&dir).unwrap() {
            let path = file.unwrap().path();
            let mut bytes = std::fs::read(&path).unwrap();
            let is_layer = path.file_name().unwrap().to_str() == Some(layer.hex());
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let hit = match what {
                "layer" => is_layer,
                "config" => text.contains("rootfs"),
                "manifest" => text.contains("schemaVersion"),
                _ => false,
            };
            if hit {
                // Same length, other content. In gzip the header's time changes nothing of what is unpacked.
                let at = if is_layer { 4 } else { bytes.len() - 2 };
                bytes[at] ^= 1;
                std::fs::write(&path, bytes).unwrap();
            }
        }
        let result = layout
            .image(&Selector::Only, &Platform::host())
            .and_then(|i| unpack(&i.layers, &world.dest(), &options()));
        assert!(matches!(result, Err(Error::Digest { .. })), "{what}: {result:?}");
        assert!(!world.dest().exists(), "{what}");
    }
}

#[test]
fn platforms_tags_and_nested_indexes() {
    let world = World::new();
    let blob = Blob::zstd(&archive());
    let (digest, size) = world.put(&blob.bytes);
    let layer = json!({"mediaType": ZSTD, "digest": digest, "size": size});
    let host = Platform::host();
    let config = world.config(&[blob.diff_id], json!({}));
    let good = world.put_json(MANIFEST, &json!({"schemaVersion": 2, "config": config, "layers": [layer]}));
    let with = |mut d: Value, os: &str, arch: &str| {
        d["platform"] = json!({"os": os, "architecture": arch});
        d
    };
    let bad = world.put_json(MANIFEST, &json!({"schemaVersion": 2, "config": config, "layers": []}));
    let index = world.put_json(
        INDEX,
        &json!({"schemaVersion": 2, "manifests": [
            with(bad.clone(), "windows", &host.architecture), with(good.clone(), "linux", &host.architecture)]}),
    );
    let docker = "application/vnd.docker.distribution.manifest.list.v2+json";
    let mut nested = world.put_json(docker, &json!({"schemaVersion": 2, "manifests": [index]}));
    nested["annotations"] = json!({"org.opencontainers.image.ref.name": "nested"});
    let mut other =
        world.put_json(INDEX, &json!({"schemaVersion": 2, "manifests": [with(bad, "plan9", "mips")]}));
    other["annotations"] = json!({"org.opencontainers.image.ref.name": "other"});
    let mut deep = good.clone();
    for _ in 0..5 {
        deep = world.put_json(INDEX, &json!({"schemaVersion": 2, "manifests": [deep]}));
    }
    deep["annotations"] = json!({"org.opencontainers.image.ref.name": "deep"});
    world.index(json!([nested, other, deep]));
    let layout = Layout::open(world.layout_dir()).unwrap();
    let image = |text: &str| layout.image(&Selector::parse(text).unwrap(), &host);
    let found = image("nested").unwrap();
    assert_eq!(found.digest.to_string(), good["digest"].as_str().unwrap());
    assert!(matches!(image("other"), Err(Error::Platform { .. })));
    assert!(image("deep").unwrap_err().to_string().contains("MAX_INDEX_DEPTH"));
    let error = image("gone").unwrap_err().to_string();
    assert!(error.contains("nested") && error.contains("other"), "{error}");
    assert!(image("").unwrap_err().to_string().contains("several"));
    assert!(image(nested["digest"].as_str().unwrap()).is_ok());
}

#[test]
fn layouts_that_are_not() {
    let world = World::new();
    assert!(Layout::open(world.layout_dir()).is_err(), "no index.json");
    for index in ["", "[]", "{", r#"{"schemaVersion":2}"#, r#"{"schemaVersion":2,"manifests":{}}"#] {
        std::fs::write(world.layout_dir().join("index.json"), index).unwrap();
        assert!(Layout::open(world.layout_dir()).is_err(), "{index}");
    }
    let nested = format!(r#"{{"schemaVersion":2,"x":{}}}"#, "[".repeat(10_000));
    std::fs::write(world.layout_dir().join("index.json"), nested).unwrap();
    assert!(Layout::open(world.layout_dir()).is_err(), "deep JSON");
    let file = std::fs::File::create(world.layout_dir().join("index.json")).unwrap();
    file.set_len(100 << 20).unwrap();
    let error = Layout::open(world.layout_dir()).unwrap_err().to_string();
    assert!(error.contains("MAX_DOCUMENT_BYTES"), "{error}");
    world.index(json!([]));
    assert!(Layout::open(world.layout_dir()).unwrap().image(&Selector::Only, &Platform::host()).is_err());
    std::fs::remove_file(world.layout_dir().join("oci-layout")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", world.layout_dir().join("oci-layout")).unwrap();
    assert!(Layout::open(world.layout_dir()).is_err(), "links are not followed");
}

#[test]
fn built_images_and_flights_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let builder = LayoutBuilder::create(dir.path().join("layout")).unwrap();
    let spec = ImageSpec {
        files: vec![
            FileSpec { path: "/usr/bin/app".into(), content: b"program".to_vec(), mode: 0o755 },
            FileSpec {
                path: "etc/passwd".into(),
                content: b"app:x:7:8:App:/home/app:/bin/sh\n".to_vec(),
                mode: 0o644,
            },
            FileSpec {
                path: "etc/group".into(),
                content: b"app:x:8:\nmore:x:9:app,x\n".to_vec(),
                mode: 0o644,
            },
        ],
        entrypoint: vec!["/usr/bin/app".into()],
        env: vec!["A=1".into(), "A=2".into(), "B=x=y".into()],
        user: "app".into(),
        stop_signal: "SIGINT".into(),
        ..ImageSpec::default()
    };
    let digest = builder.image("v1", &spec).unwrap();
    assert_eq!(builder.image("v1", &spec).unwrap(), digest, "the same bytes each time");
    let module = b"\0asm\x01\0\0\0".repeat(1000);
    builder.flight("flight", &module).unwrap();
    let layout = Layout::open(dir.path().join("layout")).unwrap();
    assert_eq!(layout.tags().collect::<Vec<_>>(), ["v1", "flight"]);
    let image = layout.image(&Selector::Tag("v1".into()), &Platform::host()).unwrap();
    let env: Vec<_> = image.config.env.iter().map(|v| (v.name(), v.value())).collect();
    assert_eq!(env, [("A", "2"), ("B", "x=y")]);
    assert_eq!(image.config.stop_signal.unwrap().number(), 2);
    let root = dir.path().join("root");
    unpack(&image.layers, &root, &Options::default()).unwrap();
    let user = resolve_user(&root, image.config.user.as_ref()).unwrap();
    assert_eq!((user.uid, user.gid, user.groups.as_slice()), (7, 8, &[9][..]));
    assert_eq!(user.home.as_deref(), Some("/home/app"));
    let flight = Selector::Tag("flight".into());
    assert_eq!(layout.flight_module(&flight).unwrap(), module);
    let error = layout.flight_module(&Selector::Tag("v1".into())).unwrap_err().to_string();
    assert!(error.contains("vnd.yoke.config"), "{error}");
    assert!(layout.image(&flight, &Platform::host()).is_err(), "a flight is not an image");
}

#[test]
fn a_flight_that_is_a_bomb() {
    let dir = tempfile::tempdir().unwrap();
    let builder = LayoutBuilder::create(dir.path()).unwrap();
    builder.flight("bomb", &vec![0u8; (64 << 20) + 1]).unwrap();
    let layout = Layout::open(dir.path()).unwrap();
    let error = layout.flight_module(&Selector::Tag("bomb".into())).unwrap_err().to_string();
    assert!(error.contains("MAX_MODULE_BYTES"), "{error}");
}

#[test]
fn configurations_that_must_not_reach_the_system() {
    let parse = |config: Value| {
        let document = json!({"os": "linux", "architecture": "amd64", "config": config,
            "rootfs": {"type": "layers", "diff_ids": []}});
        ImageConfig::parse(document.to_string().as_bytes())
    };
    for (config, field) in [
        (json!({"Env": ["A=1\nB=2"]}), "config.Env[0]"),
        (json!({"Env": ["A=1", "AB"]}), "config.Env[1]"),
        (json!({"Env": ["=x"]}), "config.Env[0]"),
        (json!({"Env": ["A=\u{0}"]}), "config.Env[0]"),
        (json!({"Env": vec!["A=1"; 2000]}), "config.Env"),
        (json!({"Cmd": ["a\u{0}b"]}), "config.Cmd[0]"),
        (json!({"Cmd": vec!["x"; 100_000]}), "config.Cmd"),
        (json!({"Entrypoint": ["x", "y\u{0}"]}), "config.Entrypoint[1]"),
        (json!({"Entrypoint": ["x\ny"]}), "config.Entrypoint[0]"),
        (json!({"User": "root\nExecStart="}), "config.User"),
        (json!({"User": "4294967295"}), "config.User"),
        (json!({"User": "4294967296"}), "config.User"),
        (json!({"User": "99999999999999999999"}), "config.User"),
        (json!({"User": "-1"}), "config.User"),
        (json!({"User": "a:b:c"}), "config.User"),
        (json!({"User": "%n"}), "config.User"),
        (json!({"WorkingDir": "/../.."}), "config.WorkingDir"),
        (json!({"WorkingDir": "/a\nb"}), "config.WorkingDir"),
        (json!({"StopSignal": "9999"}), "config.StopSignal"),
        (json!({"StopSignal": "SIGNOPE"}), "config.StopSignal"),
        (json!({"StopSignal": "0"}), "config.StopSignal"),
        (json!({"StopSignal": "RTMIN+99"}), "config.StopSignal"),
        (json!({"Volumes": {"/proc": {}}}), "config.Volumes"),
        (json!({"Volumes": {"/": {}}}), "config.Volumes"),
        (json!({"Volumes": {"/data/../../etc": {}}}), "config.Volumes"),
        (json!({"Labels": {"a\nb": "c"}}), "config.Labels"),
    ] {
        match parse(config.clone()) {
            Err(Error::Config { field: found, .. }) => assert!(found.starts_with(field), "{config}: {found}"),
            other => panic!("{config}: {other:?}"),
        }
    }
    let fine = parse(json!({
        "Env": ["A=%n", "B=${C}", "PATH=/bin"], "Cmd": ["sh", "-c", "a\nb"], "User": "0:nogroup",
        "WorkingDir": "app/./x", "StopSignal": "RTMIN+3", "Volumes": null, "Labels": null,
        "Entrypoint": null,
    }))
    .unwrap();
    assert_eq!(fine.env[0].value(), "%n", "kept as it is: nothing expands it");
    assert_eq!(fine.working_dir.as_str(), "/app/x");
    assert_eq!(fine.stop_signal.unwrap().number(), 37);
    assert_eq!(fine.user.unwrap().user, UserName::Id(0));
    assert!(ImageConfig::parse(b"{}").is_err());
}
