//! Modes, owners, times, attributes and special files; and that the destination is all or nothing.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests say what is wrong by panicking")]

mod common;

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use common::*;
use horchestra_oci::{Error, Options, Owners};

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn modes_with_their_special_bits() {
    let world = World::new();
    let archive = Tar::new()
        .head(Head::new("d", b'5').mode(0o1777))
        .head(Head::new("closed", b'5').mode(0o500))
        .file("closed/x", "x")
        .head(Head::new("s", b'0').mode(0o4755).data("x"))
        .head(Head::new("g", b'0').mode(0o2755).data("x"))
        .head(Head::new("none", b'0').mode(0).data("x"));
    let more = Tar::new().file("closed/y", "y");
    world.unpack(&[Blob::plain(&archive.end()), Blob::plain(&more.end())], &options()).unwrap();
    let mode = |name: &str| world.dest().join(name).metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode("d"), 0o1777);
    assert_eq!(mode("closed"), 0o500);
    assert_eq!(mode("s"), 0o4755);
    assert_eq!(mode("g"), 0o2755);
    assert_eq!(mode("none"), 0);
    assert!(world.dest().join("closed/y").exists());
    horchestra_oci::remove_tree(&world.dest()).unwrap();
    assert!(!world.dest().exists());
}

#[test]
fn owners_are_kept_or_squashed() {
    let archive = Tar::new()
        .pax(&[("uid", b"2147483648"), ("gid", b"4294967294")])
        .head(Head::new("a", b'0').mode(0o4755).data("x"))
        .pax(&[("uid", b"1234")])
        .symlink("l", "a")
        .pax(&[("uid", b"1234")])
        .dir("d")
        .end();
    for owners in [Owners::Keep, Owners::Squash] {
        if owners == Owners::Keep && !is_root() {
            continue;
        }
        let world = World::new();
        world.unpack(&[Blob::plain(&archive)], &Options { owners, ..options() }).unwrap();
        let own = |name: &str| {
            let meta = world.dest().join(name).symlink_metadata().unwrap();
            (meta.uid(), meta.gid())
        };
        let me = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let keep = owners == Owners::Keep;
        assert_eq!(own("a"), if keep { (2_147_483_648, 4_294_967_294) } else { me });
        assert_eq!(own("l"), if keep { (1234, 0) } else { me });
        assert_eq!(own("d"), if keep { (1234, 0) } else { me });
        // A change of owner takes setuid away unless the mode is set after it.
        assert_eq!(world.dest().join("a").metadata().unwrap().permissions().mode() & 0o7777, 0o4755);
    }
}

#[test]
fn times_even_strange_ones() {
    let world = World::new();
    let archive = Tar::new()
        .head(Head { mtime: b"00000001750\0".to_vec(), ..Head::new("d", b'5') })
        .file("d/inside", "x")
        .pax(&[("mtime", b"1000000000.5")])
        .file("f", "x")
        .pax(&[("mtime", b"-5")])
        .file("before", "x")
        .pax(&[("mtime", b"253402300799")])
        .file("year9999", "x")
        .head(Head { mtime: vec![0xff; 12], ..Head::new("minus_one", b'0') })
        .pax(&[("mtime", b"77")])
        .symlink("l", "nowhere");
    world.unpack(&[Blob::plain(&archive.end())], &options()).unwrap();
    let time = |name: &str| {
        let meta = world.dest().join(name).symlink_metadata().unwrap();
        (meta.mtime(), meta.mtime_nsec())
    };
    assert_eq!(time("d"), (1000, 0), "although something was made in it later");
    assert_eq!(time("f"), (1_000_000_000, 500_000_000));
    assert_eq!(time("before"), (-5, 0));
    assert_eq!(time("minus_one"), (-1, 0));
    assert_eq!(time("l"), (77, 0));
    // ext4 ends in 2446; later times are what the file system makes of them.
    assert!(time("year9999").0 > 10_000_000_000);
}

#[test]
fn hard_links_share_a_file() {
    let world = World::new();
    let archive = Tar::new().file("a", "x").hardlink("d/b", "/a").hardlink("c", "./d/b");
    let upper = Tar::new().hardlink("e", "a");
    world.unpack(&[Blob::plain(&archive.end()), Blob::plain(&upper.end())], &options()).unwrap();
    let ino = |name: &str| world.dest().join(name).metadata().unwrap().ino();
    assert!(["d/b", "c", "e"].iter().all(|n| ino(n) == ino("a")));
}

#[test]
fn special_files() {
    let archive = Tar::new()
        .head(Head::new("null", b'3'))
        .head(Head::new("disk", b'4'))
        .head(Head::new("pipe", b'6').mode(0o622))
        .end();
    let world = World::new();
    let report = world.unpack(&[Blob::plain(&archive)], &options()).unwrap();
    assert_eq!(report.devices_skipped, 2);
    assert_eq!(tree(&world.dest()), expected(&[("pipe", "fifo 622")]));
    if is_root() {
        let world = World::new();
        let report = world.unpack(&[Blob::plain(&archive)], &Options { devices: true, ..options() }).unwrap();
        assert_eq!(report.devices_skipped, 0);
        assert_eq!(tree(&world.dest()).get("null").map(String::as_str), Some("device"));
    }
}

#[test]
fn attributes_that_steer_the_system_are_dropped() {
    let world = World::new();
    let cap = [1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let archive = Tar::new()
        .pax(&[
            ("SCHILY.xattr.trusted.overlay.opaque", b"y"),
            ("SCHILY.xattr.user.overlay.redirect", b"/etc"),
            ("SCHILY.xattr.security.selinux", b"x"),
            ("SCHILY.xattr.user.mime", b"text/plain"),
            ("SCHILY.xattr.security.capability", &cap),
        ])
        .file("a", "x")
        .pax(&[("SCHILY.xattr.trusted.overlay.opaque", b"y"), ("SCHILY.xattr.user.d", b"1")])
        .dir("d")
        .end();
    let report = world.unpack(&[Blob::plain(&archive)], &options()).unwrap();
    let get = |file: &str, name: &str| {
        let mut value = [0u8; 64];
        rustix::fs::getxattr(world.dest().join(file), name, &mut value).map(|n| value[..n].to_vec()).ok()
    };
    let supported = get("a", "user.mime").is_some();
    if supported {
        assert_eq!(get("a", "user.mime").unwrap(), b"text/plain");
        assert_eq!(get("d", "user.d").unwrap(), b"1");
    }
    for name in ["trusted.overlay.opaque", "user.overlay.redirect"] {
        assert_eq!(get("a", name), None, "{name}");
        assert_eq!(get("d", name), None, "{name}");
    }
    if is_root() && supported {
        assert_eq!(get("a", "security.capability").unwrap(), cap);
        assert_eq!(report.xattrs_dropped, 4);
    }
}

#[test]
fn an_existing_destination_is_left_alone() {
    let world = World::new();
    std::fs::create_dir(world.dest()).unwrap();
    std::fs::write(world.dest().join("mine"), "x").unwrap();
    let result = world.unpack(&[Blob::plain(&Tar::new().file("a", "").end())], &options());
    assert!(matches!(result, Err(Error::Exists { .. })), "{result:?}");
    assert_eq!(tree(&world.dest()), expected(&[("mine", "file 644 x")]));
    world.assert_outside_untouched("existing");
}

#[test]
fn a_link_in_the_place_of_the_destination_is_not_followed() {
    let world = World::new();
    std::os::unix::fs::symlink(world.dir.path().join("out/etc"), world.dest()).unwrap();
    let result = world.unpack(&[Blob::plain(&Tar::new().file("a", "").end())], &options());
    assert!(matches!(result, Err(Error::Exists { .. })), "{result:?}");
    world.assert_outside_untouched("link");
}
