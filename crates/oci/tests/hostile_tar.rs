//! Archives that want out, or want to exhaust us. Each is refused with the reason, or ends where it belongs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests say what is wrong by panicking")]

mod common;

use common::*;
use horchestra_oci::{Error, Limits, Options};

enum Want<'a> {
    /// Refused, and the message says why in these words.
    Refused(&'a str),
    /// Exactly this tree.
    Tree(&'a [(&'a str, &'a str)]),
}
use Want::{Refused, Tree};

fn check(case: &str, layers: &[Vec<u8>], want: &Want<'_>) {
    let world = World::new();
    let blobs: Vec<_> = layers.iter().map(|l| Blob::plain(l)).collect();
    let result = world.unpack(&blobs, &options());
    world.assert_outside_untouched(case);
    match want {
        Refused(words) => {
            let error = result.expect_err(case);
            assert!(matches!(error, Error::Entry { .. } | Error::Limit { .. }), "{case}: {error:?}");
            assert!(error.to_string().contains(words), "{case}: {error}");
            assert!(!world.dest().exists(), "{case}");
        }
        Tree(entries) => {
            result.unwrap_or_else(|e| panic!("{case}: {e}"));
            assert_eq!(tree(&world.dest()), expected(entries), "{case}");
        }
    }
}

fn t() -> Tar {
    Tar::new()
}

#[test]
fn paths_stay_inside() {
    let deep = "d/".repeat(1000) + "x";
    let pax_deep = "d/".repeat(2000) + "x";
    for (case, archive, want) in [
        (
            "absolute path",
            t().file("/etc/passwd", "x"),
            Tree(&[("etc", "dir 755"), ("etc/passwd", "file 644 x")]),
        ),
        ("dots and slashes", t().file(".//./a///b", "x"), Tree(&[("a", "dir 755"), ("a/b", "file 644 x")])),
        ("parent", t().file("../etc/passwd", "x"), Refused("'..'")),
        ("parent in the middle", t().file("a/../../etc/passwd", "x"), Refused("'..'")),
        ("parent at the end", t().dir("a/.."), Refused("'..'")),
        ("parent after a link", t().symlink("a", "/").file("a/../etc/passwd", "x"), Refused("'..'")),
        (
            "link to the root, then through it",
            t().dir("etc").symlink("a", "/").file("a/etc/passwd", "x"),
            Tree(&[("a", "-> /"), ("etc", "dir 755"), ("etc/passwd", "file 644 x")]),
        ),
        (
            "link upwards, then through it",
            t().dir("etc").symlink("a", "../../../..").file("a/etc/passwd", "x"),
            Tree(&[("a", "-> ../../../.."), ("etc", "dir 755"), ("etc/passwd", "file 644 x")]),
        ),
        (
            "two links, each inside, together outside",
            t().dir("d")
                .dir("etc")
                .symlink("d/up", "..")
                .symlink("out", "d/up/..")
                .file("out/etc/passwd", "x"),
            Tree(&[
                ("d", "dir 755"),
                ("d/up", "-> .."),
                ("etc", "dir 755"),
                ("etc/passwd", "file 644 x"),
                ("out", "-> d/up/.."),
            ]),
        ),
        ("magic link", t().symlink("a", "/proc/self/root").file("a/etc/passwd", "x"), Refused("not there")),
        ("loop of links", t().symlink("a", "b").symlink("b", "a").file("a/x", "x"), Refused("loop")),
        ("dangling link as a directory", t().symlink("a", "gone").file("a/x", "x"), Refused("not there")),
        ("link named .", t().symlink(".", "/etc"), Refused("root directory")),
        ("link named /.", t().symlink("/.", "/etc"), Refused("root directory")),
        ("file named ./", t().head(Head::new("./", b'2').link("/")), Refused("root directory")),
        ("no name", t().file("", "x"), Refused("empty")),
        ("below a file", t().file("a", "x").file("a/b", "x"), Refused("not a directory")),
        (
            "name of 300 bytes",
            t().pax(&[("path", "n".repeat(300).as_bytes())]).file("a", ""),
            Refused("MAX_NAME_BYTES"),
        ),
        (
            "path of 64 KB",
            t().pax(&[("path", "n/".repeat(32 << 10).as_bytes())]).file("a", ""),
            Refused("MAX_PATH_BYTES"),
        ),
        ("1000 deep", t().pax(&[("path", deep.as_bytes())]).file("a", ""), Refused("MAX_DEPTH")),
        ("2000 deep", t().pax(&[("path", pax_deep.as_bytes())]).file("a", ""), Refused("MAX_DEPTH")),
        (
            "newline and bytes that are not UTF-8",
            t().file(b"a\nb", "x").file(b"\xff\xfe", "y"),
            Tree(&[("a\nb", "file 644 x"), ("\u{fffd}\u{fffd}", "file 644 y")]),
        ),
        ("NUL in a PAX name", t().pax(&[("path", b"a\0b")]).file("c", ""), Refused("NUL")),
        ("NUL in a GNU name", t().head(Head::new("L", b'L').data(b"a\0b\0")).file("c", ""), Refused("NUL")),
    ] {
        check(case, &[archive.end()], &want);
    }
}

#[test]
fn depth_cannot_grow_through_links() {
    let mut archive = t();
    for round in 0..8 {
        let path = format!(
            "{}{}",
            if round == 0 { String::new() } else { format!("s{}/", round - 1) },
            "d/".repeat(45)
        );
        archive = archive.dir(&path);
        // Each link leads as deep as everything before it.
        let target = "d/".repeat(45 * (round + 1));
        archive =
            archive.head(Head::new("K", b'K').data(format!("{target}\0"))).symlink(format!("s{round}"), "x");
    }
    check("links make it deeper and deeper", &[archive.end()], &Refused("MAX_DEPTH"));
}

#[test]
fn hard_links_stay_inside() {
    for (case, archive, want) in [
        ("outside", t().hardlink("a", "../../etc/passwd"), Refused("'..'")),
        ("absolute, not there", t().hardlink("a", "/etc/passwd"), Refused("not there")),
        (
            "through a link to the root",
            t().symlink("r", "/").hardlink("a", "r/etc/passwd"),
            Refused("not there"),
        ),
        ("to a later entry", t().hardlink("a", "b").file("b", "x"), Refused("not there")),
        ("to itself", t().file("a", "x").hardlink("a", "./a"), Refused("itself")),
        ("to itself, not there", t().hardlink("a", "a"), Refused("not there")),
        ("to a directory", t().dir("d").hardlink("a", "d"), Refused("directory")),
        ("to the root", t().hardlink("a", "/"), Refused("root directory")),
        (
            "over the directory of its target",
            t().file("d/x", "x").hardlink("d", "d/x"),
            Refused("holds its target"),
        ),
        (
            "to a link: the link itself, not what it leads to",
            t().symlink("l", "/etc/passwd").hardlink("a", "l"),
            Tree(&[("a", "-> /etc/passwd"), ("l", "-> /etc/passwd")]),
        ),
        (
            "writing over one name leaves the other",
            t().file("a", "one").hardlink("b", "a").file("b", "two"),
            Tree(&[("a", "file 644 one"), ("b", "file 644 two")]),
        ),
    ] {
        check(case, &[archive.end()], &want);
    }
}

#[test]
fn one_kind_over_another() {
    for (case, layers, want) in [
        (
            "directory over a link does not change what it leads to",
            vec![
                t().head(Head::new("real", b'5').mode(0o700))
                    .symlink("l", "real")
                    .head(Head::new("l", b'5').mode(0o777)),
            ],
            Tree(&[("real", "dir 700"), ("l", "dir 777")][..]),
        ),
        (
            "directory over a link out of the tree",
            vec![t().symlink("l", "/etc"), t().head(Head::new("l", b'5').mode(0o777)).file("l/passwd", "x")],
            Tree(&[("l", "dir 777"), ("l/passwd", "file 644 x")]),
        ),
        ("file over a directory", vec![t().file("d/x/y", "1").file("d", "2")], Tree(&[("d", "file 644 2")])),
        ("directory over a file", vec![t().file("d", "1").dir("d")], Tree(&[("d", "dir 755")])),
        (
            "file over a link",
            vec![t().symlink("l", "/etc/passwd").file("l", "x")],
            Tree(&[("l", "file 644 x")]),
        ),
        ("link over a directory", vec![t().file("d/x", "1"), t().symlink("d", "e")], Tree(&[("d", "-> e")])),
        (
            "below a file of a lower layer",
            vec![t().file("a", "1"), t().file("a/b", "2")],
            Refused("not a directory"),
        ),
        (
            "duplicates: the last one counts",
            vec![t().file("a", "1").file("a", "2").file("./a", "3")],
            Tree(&[("a", "file 644 3")]),
        ),
    ] {
        let layers: Vec<_> = layers.into_iter().map(Tar::end).collect();
        check(case, &layers, &want);
    }
}

#[test]
fn whiteouts() {
    let lower = || t().file("d/a", "a").file("d/b", "b").file("e", "e");
    let all = &[("d", "dir 755"), ("d/a", "file 644 a"), ("d/b", "file 644 b"), ("e", "file 644 e")][..];
    for (case, upper, want) in [
        ("of nothing", t().file(".wh.", ""), Refused("whiteout")),
        ("of .", t().file("d/.wh..", ""), Refused("whiteout")),
        ("of ..", t().file("d/.wh...", ""), Refused("whiteout")),
        ("of the prefix", t().file("d/.wh..wh.", ""), Refused("whiteout")),
        ("with content", t().file("d/.wh.a", "x"), Refused("not an empty file")),
        ("opaque as a directory", t().dir("d/.wh..wh..opq"), Refused("not an empty file")),
        ("something below one", t().file(".wh.d/x", ""), Refused("below a whiteout")),
        ("of what is not there", t().file(".wh.x", "").file("y/.wh.z", ""), Tree(all)),
        (
            "AUFS bookkeeping",
            t().file(".wh..wh.aufs", "").dir(".wh..wh.plnk").file(".wh..wh.plnk/1.2", "x"),
            Tree(all),
        ),
        (
            "of a file",
            t().file("d/.wh.a", ""),
            Tree(&[("d", "dir 755"), ("d/b", "file 644 b"), ("e", "file 644 e")]),
        ),
        ("of a directory", t().file(".wh.d", ""), Tree(&[("e", "file 644 e")])),
        (
            "opaque, then children",
            t().file("d/.wh..wh..opq", "").file("d/c", "c"),
            Tree(&[("d", "dir 755"), ("d/c", "file 644 c"), ("e", "file 644 e")]),
        ),
        (
            "children, then opaque",
            t().file("d/c", "c").file("d/.wh..wh..opq", ""),
            Tree(&[("d", "dir 755"), ("d/c", "file 644 c"), ("e", "file 644 e")]),
        ),
        (
            "whiteout inside an opaque directory",
            t().file("d/.wh.a", "").file("d/.wh..wh..opq", "").file("d/.wh.b", ""),
            Tree(&[("d", "dir 755"), ("e", "file 644 e")]),
        ),
        ("opaque root", t().file(".wh..wh..opq", "").file("n", "n"), Tree(&[("n", "file 644 n")])),
        (
            "gone and new again, whiteout first",
            t().file(".wh.d", "").file("d/c", "c"),
            Tree(&[("d", "dir 755"), ("d/c", "file 644 c"), ("e", "file 644 e")]),
        ),
        (
            "gone and new again, whiteout last",
            t().file("d/c", "c").file(".wh.d", ""),
            Tree(&[("d", "dir 755"), ("d/c", "file 644 c"), ("e", "file 644 e")]),
        ),
        (
            "through a link to the root",
            t().symlink("r", "/").file("r/d/.wh.a", ""),
            Tree(&[("d", "dir 755"), ("d/b", "file 644 b"), ("e", "file 644 e"), ("r", "-> /")]),
        ),
    ] {
        check(case, &[lower().end(), upper.end()], &want);
    }
}

#[test]
fn a_whiteout_forgets_the_mode_of_what_it_hides_in_either_order() {
    let lower = t().head(Head::new("d", b'5').mode(0o700)).file("d/a", "a").end();
    let want = Tree(&[("d", "dir 755"), ("d/c", "file 644 c")]);
    check("first", &[lower.clone(), t().file(".wh.d", "").file("d/c", "c").end()], &want);
    check("last", &[lower, t().file("d/c", "c").file(".wh.d", "").end()], &want);
}

#[test]
fn headers_that_two_readers_read_differently() {
    let huge = |first: u8| {
        let mut size = vec![first; 12];
        size[11] = 1;
        size
    };
    let head = |change: fn(&mut Head)| {
        let mut h = Head::new("a", b'0');
        change(&mut h);
        t().head(h)
    };
    for (case, archive, want) in [
        ("PAX size smaller", t().pax(&[("size", b"1")]).file("a", "xyz"), Refused("two sizes")),
        (
            "PAX size larger",
            t().pax(&[("size", b"1024")]).file("a", "xyz").file("b", ""),
            Refused("two sizes"),
        ),
        ("PAX size the same", t().pax(&[("size", b"3")]).file("a", "xyz"), Tree(&[("a", "file 644 xyz")])),
        (
            "PAX size before a long name",
            t().pax(&[("size", b"0")]).head(Head::new("L", b'L').data("n\0")).file("a", ""),
            Tree(&[("n", "file 644 ")]),
        ),
        ("PAX size twice", t().pax(&[("size", b"1"), ("size", b"2")]).file("a", "x"), Refused("twice")),
        (
            "GNU name and PAX name",
            t().head(Head::new("L", b'L').data("one\0")).pax(&[("path", b"two")]).file("a", ""),
            Refused("two names"),
        ),
        (
            "GNU name and PAX name the same",
            t().pax(&[("path", b"one")]).head(Head::new("L", b'L').data("one\0")).file("a", ""),
            Tree(&[("one", "file 644 ")]),
        ),
        (
            "two PAX headers",
            t().pax(&[("path", b"a")]).pax(&[("path", b"b")]).file("c", ""),
            Refused("twice"),
        ),
        (
            "global PAX that renames",
            t().head(Head::new("g", b'g').data(pax_records(&[("path", b"x")]))).file("a", ""),
            Refused("global"),
        ),
        (
            "global PAX with a comment",
            t().head(Head::new("g", b'g').data(pax_records(&[("comment", b"x")]))).file("a", ""),
            Tree(&[("a", "file 644 ")]),
        ),
        ("extension without an entry", t().pax(&[("path", b"a")]), Refused("without an entry")),
        ("extension of 1 MB", t().head(Head::new("x", b'x').data(vec![b'0'; 1 << 20])), Refused("allowed")),
        (
            "extension of 8 GB",
            head(|h| {
                h.kind = b'L';
                h.size = b"77777777777\0".to_vec();
            }),
            Refused("allowed"),
        ),
        ("negative size", t().head(Head { size: vec![0xff; 12], ..Head::new("a", b'0') }), Refused("size")),
        ("size beyond 64 bits", t().head(Head { size: huge(0x9f), ..Head::new("a", b'0') }), Refused("size")),
        ("size not octal", head(|h| h.size = b"9\0".to_vec()), Refused("size")),
        ("directory with data", t().head(Head::new("d", b'5').data("x")), Refused("cannot have any")),
        ("link with data", t().head(Head::new("l", b'2').link("a").data("x")), Refused("cannot have any")),
        ("owner -1", t().head(Head { uid: vec![0xff; 8], ..Head::new("a", b'0') }), Refused("owner")),
        ("owner 2^32-1", t().pax(&[("uid", b"4294967295")]).file("a", ""), Refused("owner")),
        ("owner 2^32", t().pax(&[("uid", b"4294967296")]).file("a", ""), Refused("owner")),
        ("group 2^32-1", t().pax(&[("gid", b"4294967295")]).file("a", ""), Refused("group")),
        ("time not a number", t().pax(&[("mtime", b"soon")]).file("a", ""), Refused("mtime")),
        ("unknown type", t().head(Head::new("a", b'V')), Refused("not supported")),
        ("PAX sparse", t().pax(&[("GNU.sparse.major", b"1")]).file("a", ""), Refused("sparse")),
        (
            "checksum",
            Tar({
                let mut b = t().file("a", "").0;
                b[0] = b'b';
                b
            }),
            Refused("checksum"),
        ),
        (
            "one empty block",
            Tar({
                let mut b = vec![0; 512];
                b.extend(t().file("a", "").0);
                b
            }),
            Refused("empty block"),
        ),
    ] {
        check(case, &[archive.end()], &want);
    }
}

#[test]
fn truncated_archives() {
    for (case, bytes) in [
        ("within a header", t().file("a", "x").0[..300].to_vec()),
        ("within data", t().file("a", "x".repeat(2000)).0[..1000].to_vec()),
        ("within an extension", t().pax(&[("path", &[b'a'; 600])]).0[..700].to_vec()),
    ] {
        let world = World::new();
        let result = world.unpack(&[Blob::plain(&bytes)], &options());
        assert!(result.is_err(), "{case}");
        assert!(!world.dest().exists(), "{case}");
        world.assert_outside_untouched(case);
    }
}

/// A GNU sparse header: segments as (offset, length), and the real size.
fn sparse(segments: &[(u64, u64)], real: &[u8], data: &[u8]) -> Tar {
    let mut gnu = vec![0u8; 126];
    for (n, (offset, length)) in segments.iter().enumerate() {
        gnu[n * 24..n * 24 + 12].copy_from_slice(format!("{offset:011o}\0").as_bytes());
        gnu[n * 24 + 12..n * 24 + 24].copy_from_slice(format!("{length:011o}\0").as_bytes());
    }
    gnu[97..97 + real.len()].copy_from_slice(real);
    t().head(Head { gnu, ..Head::new("s", b'S').data(data) })
}

#[test]
fn sparse_files() {
    let eight_eib = [0x80, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    check("8 EiB", &[sparse(&[(0, 3)], &eight_eib, b"abc").end()], &Refused("MAX_UNPACKED_BYTES"));
    check("overlap", &[sparse(&[(0, 512), (100, 3)], b"00000002000\0", &[b'x'; 515]).end()], &Refused("map"));
    check("data beyond", &[sparse(&[(0, 3)], b"00000000002\0", b"abc").end()], &Refused("contradicts"));
    check("too little data", &[sparse(&[(0, 4)], b"00000000010\0", b"abc").end()], &Refused("contradicts"));
    let world = World::new();
    world.unpack(&[Blob::plain(&sparse(&[(512, 3)], b"00000002000\0", b"abc").end())], &options()).unwrap();
    let content = std::fs::read(world.dest().join("s")).unwrap();
    let mut want = vec![0u8; 1024];
    want[512..515].copy_from_slice(b"abc");
    assert_eq!(content, want);
}

#[test]
fn bombs() {
    let small = Options {
        limits: Limits { unpacked_bytes: 1 << 20, entries: 1000, ..Limits::default() },
        ..options()
    };
    let zeros = vec![0u8; 64 << 20];
    let one_file = t().file("big", vec![0u8; 8 << 20]).end();
    let many = (0..2000).fold(t(), |t, n| t.file(format!("f{n}"), "")).end();
    let mut nested = gzip(&t().file("a", "x").end());
    nested.extend(gzip(&zeros));
    for (case, blob, words) in [
        ("zeros in gzip", Blob::gzip(&zeros), "MAX_UNPACKED_BYTES"),
        ("zeros in zstd", Blob::zstd(&zeros), "MAX_UNPACKED_BYTES"),
        ("a file of zeros", Blob::gzip(&one_file), "MAX_UNPACKED_BYTES"),
        ("many entries", Blob::gzip(&many), "MAX_ENTRIES"),
        ("a second gzip member", Blob { bytes: nested, ..Blob::gzip(b"") }, "MAX_UNPACKED_BYTES"),
    ] {
        let world = World::new();
        let error = world.unpack(&[blob], &small).expect_err(case);
        assert!(error.to_string().contains(words), "{case}: {error}");
        assert!(!world.dest().exists(), "{case}");
        world.assert_outside_untouched(case);
    }
}

#[test]
fn compressed_streams() {
    let archive = t().file("a", "x").end();
    let with = |change: fn(&mut Vec<u8>)| {
        let mut blob = Blob::gzip(&archive);
        change(&mut blob.bytes);
        blob
    };
    let two_members = {
        let (one, two) = archive.split_at(700);
        Blob { bytes: [gzip(one), gzip(two)].concat(), ..Blob::gzip(&archive) }
    };
    let two_frames = {
        let (one, two) = archive.split_at(700);
        let bytes = [zstd::encode_all(one, 3).unwrap(), zstd::encode_all(two, 3).unwrap()].concat();
        Blob { bytes, ..Blob::zstd(&archive) }
    };
    let wide = {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
        encoder.window_log(30).unwrap();
        std::io::Write::write_all(&mut encoder, &archive).unwrap();
        Blob { bytes: encoder.finish().unwrap(), ..Blob::zstd(&archive) }
    };
    for (case, blob, ok) in [
        ("gzip in two members", two_members, true),
        ("zstd in two frames", two_frames, true),
        ("garbage after gzip", with(|b| b.extend(b"garbage")), false),
        ("truncated gzip", with(|b| b.truncate(b.len() - 9)), false),
        ("not gzip", Blob { bytes: archive.clone(), ..Blob::gzip(&archive) }, false),
        ("zstd with a window of 1 GiB", wide, false),
    ] {
        let world = World::new();
        let result = world.unpack(&[blob], &options());
        assert_eq!(result.is_ok(), ok, "{case}: {result:?}");
        assert_eq!(world.dest().exists(), ok, "{case}");
    }
}

#[test]
fn layers() {
    let layers: Vec<_> = (0..300).map(|n| t().file(format!("f{n}"), "").end()).collect();
    let world = World::new();
    let blobs: Vec<_> = layers.iter().map(|l| Blob::plain(l)).collect();
    world.unpack(&blobs, &options()).unwrap();
    assert_eq!(tree(&world.dest()).len(), 300);
    let world = World::new();
    let few = Options { limits: Limits { layers: 299, ..Limits::default() }, ..options() };
    assert!(world.unpack(&blobs, &few).unwrap_err().to_string().contains("MAX_LAYERS"));
}
