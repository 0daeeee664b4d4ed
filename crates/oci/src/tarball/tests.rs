use super::Mtime;
use super::number::{field, unsigned};
use super::pax::Pax;

#[test]
fn numbers_are_octal_or_base_256_and_nothing_else() {
    for (bytes, value) in [
        (&b"0000644\0"[..], Some(0o644)),
        (b"    644 ", Some(0o644)),
        (b"644 \0\0\0\0", Some(0o644)),
        (b"\0\0\0\0\0\0\0\0", Some(0)),
        (b"0000648\0", None),
        (b"644x\0\0\0\0", None),
        (b"644\x001\0\0\0", None),
        (b"-1\0\0\0\0\0\0", None),
        (b"\x80\0\0\0\0\0\x01\0", Some(256)),
        (b"\xff\xff\xff\xff\xff\xff\xff\xff", Some(-1)),
        (b"\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", None),
    ] {
        assert_eq!(field(bytes), value, "{bytes:?}");
    }
    assert_eq!(unsigned(b"\xff\xff\xff\xff\xff\xff\xff\xff"), None);
}

#[test]
fn pax_records() {
    let pax = Pax::parse(b"10 path=a\n12 uid=1000\n19 mtime=-1.25ignore").unwrap_err();
    assert!(pax.contains("newline"), "{pax}");
    let pax = Pax::parse(b"10 path=a\n12 uid=1000\n15 mtime=-1.25\n").unwrap();
    assert_eq!(pax.path.as_deref(), Some(&b"a"[..]));
    assert_eq!(pax.uid, Some(1000));
    assert_eq!(pax.mtime, Some(Mtime { secs: -2, nanos: 750_000_000 }));
}

#[test]
fn malformed_pax_records_are_refused() {
    for bytes in [
        &b"x path=a\n"[..],
        b"99 path=a\n",
        b"10 path=a ",
        b"3 a\n",
        b"0 a=b\n",
        b"11 path=a\0\n",
        b"11 size=12\n11 size=13\n",
        b"11 size=-1\n",
        b"12 mtime=x1\n",
        b"18446744073709551616 a=b\n",
        b"20 GNU.sparse.map=0\n",
        b"+10 path=a\n",
    ] {
        assert!(Pax::parse(bytes).is_err(), "{:?}", String::from_utf8_lossy(bytes));
    }
}
