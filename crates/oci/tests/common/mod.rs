//! Archives and layouts made byte by byte, so that they can be wrong in every way.
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    reason = "each test program uses its own part"
)]

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use horchestra_oci::{Digest, Error, Layout, Options, Platform, Report, Selector, unpack};
use serde_json::{Value, json};

/// A tar archive in the making.
#[derive(Clone, Default)]
pub struct Tar(pub Vec<u8>);

/// One header, every field as the test wants it.
#[derive(Clone)]
pub struct Head {
    pub name: Vec<u8>,
    pub kind: u8,
    pub link: Vec<u8>,
    pub mode: Vec<u8>,
    pub uid: Vec<u8>,
    pub gid: Vec<u8>,
    pub size: Vec<u8>,
    pub mtime: Vec<u8>,
    pub data: Vec<u8>,
    pub gnu: Vec<u8>,
}

impl Head {
    pub fn new(name: impl AsRef<[u8]>, kind: u8) -> Self {
        Self {
            name: name.as_ref().to_vec(),
            kind,
            link: Vec::new(),
            mode: if kind == b'5' { b"0000755\0".to_vec() } else { b"0000644\0".to_vec() },
            uid: b"0000000\0".to_vec(),
            gid: b"0000000\0".to_vec(),
            size: b"00000000000\0".to_vec(),
            mtime: b"00000000000\0".to_vec(),
            data: Vec::new(),
            gnu: Vec::new(),
        }
    }

    pub fn data(mut self, data: impl AsRef<[u8]>) -> Self {
        self.data = data.as_ref().to_vec();
        self.size = format!("{:011o}\0", self.data.len()).into_bytes();
        self
    }

    pub fn link(mut self, link: impl AsRef<[u8]>) -> Self {
        self.link = link.as_ref().to_vec();
        self
    }

    pub fn mode(mut self, mode: u32) -> Self {
        self.mode = format!("{mode:07o}\0").into_bytes();
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let mut block = vec![0u8; 512];
        let mut put = |at: usize, bytes: &[u8], max: usize| {
            let n = bytes.len().min(max);
            block[at..at + n].copy_from_slice(&bytes[..n]);
        };
        put(0, &self.name, 100);
        put(100, &self.mode, 8);
        put(108, &self.uid, 8);
        put(116, &self.gid, 8);
        put(124, &self.size, 12);
        put(136, &self.mtime, 12);
        put(156, &[self.kind], 1);
        put(157, &self.link, 100);
        if self.gnu.is_empty() {
            put(257, b"ustar\x0000", 8);
        } else {
            put(257, b"ustar  \0", 8);
            put(386, &self.gnu, 126);
        }
        put(148, b"        ", 8);
        let sum: u32 = block.iter().map(|b| u32::from(*b)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        block.extend_from_slice(&self.data);
        block.resize(block.len().next_multiple_of(512), 0);
        block
    }
}

impl Tar {
    pub fn new() -> Self {
        Self::default()
    }
    pub fn head(mut self, head: Head) -> Self {
        self.0.extend(head.bytes());
        self
    }
    pub fn file(self, name: impl AsRef<[u8]>, data: impl AsRef<[u8]>) -> Self {
        self.head(Head::new(name, b'0').data(data))
    }
    pub fn dir(self, name: impl AsRef<[u8]>) -> Self {
        self.head(Head::new(name, b'5'))
    }
    pub fn symlink(self, name: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> Self {
        self.head(Head::new(name, b'2').link(to))
    }
    pub fn hardlink(self, name: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> Self {
        self.head(Head::new(name, b'1').link(to))
    }
    pub fn pax(self, records: &[(&str, &[u8])]) -> Self {
        self.head(Head::new("pax", b'x').data(pax_records(records)))
    }
    /// The archive with its end.
    pub fn end(mut self) -> Vec<u8> {
        self.0.extend([0u8; 1024]);
        self.0
    }
}

pub fn pax_records(records: &[(&str, &[u8])]) -> Vec<u8> {
    let mut all = Vec::new();
    for (key, value) in records {
        let body = key.len() + value.len() + 3;
        let mut len = body + body.to_string().len();
        if len.to_string().len() + body != len {
            len = body + len.to_string().len();
        }
        all.extend(format!("{len} {key}=").as_bytes());
        all.extend(*value);
        all.push(b'\n');
    }
    all
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut e = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    e.write_all(bytes).unwrap();
    e.finish().unwrap()
}

pub const TAR: &str = "application/vnd.oci.image.layer.v1.tar";
pub const GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
pub const ZSTD: &str = "application/vnd.oci.image.layer.v1.tar+zstd";
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub const CONFIG: &str = "application/vnd.oci.image.config.v1+json";

/// A blob of a layer: media type, bytes as stored, digest of the archive.
pub struct Blob {
    pub media_type: &'static str,
    pub bytes: Vec<u8>,
    pub diff_id: Digest,
}

impl Blob {
    pub fn plain(archive: &[u8]) -> Self {
        Self { media_type: TAR, bytes: archive.to_vec(), diff_id: Digest::of(archive) }
    }
    pub fn gzip(archive: &[u8]) -> Self {
        Self { media_type: GZIP, bytes: gzip(archive), diff_id: Digest::of(archive) }
    }
    pub fn zstd(archive: &[u8]) -> Self {
        let bytes = zstd::encode_all(archive, 3).unwrap();
        Self { media_type: ZSTD, bytes, diff_id: Digest::of(archive) }
    }
}

/// A scratch directory with a layout, a destination, and things that must never change.
pub struct World {
    pub dir: tempfile::TempDir,
}

impl World {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("out")).unwrap();
        std::fs::create_dir(dir.path().join("out/etc")).unwrap();
        std::fs::write(dir.path().join("out/etc/passwd"), "outside").unwrap();
        std::fs::create_dir_all(dir.path().join("layout/blobs/sha256")).unwrap();
        std::fs::write(dir.path().join("layout/oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
        Self { dir }
    }

    pub fn layout_dir(&self) -> PathBuf {
        self.dir.path().join("layout")
    }

    pub fn dest(&self) -> PathBuf {
        self.dir.path().join("out/root")
    }

    pub fn put(&self, bytes: &[u8]) -> (Digest, u64) {
        let digest = Digest::of(bytes);
        std::fs::write(self.layout_dir().join("blobs/sha256").join(digest.hex()), bytes).unwrap();
        (digest, bytes.len() as u64)
    }

    pub fn put_json(&self, media_type: &str, value: &Value) -> Value {
        let (digest, size) = self.put(value.to_string().as_bytes());
        json!({"mediaType": media_type, "digest": digest, "size": size})
    }

    pub fn index(&self, manifests: Value) {
        let index = json!({"schemaVersion": 2, "manifests": manifests});
        std::fs::write(self.layout_dir().join("index.json"), index.to_string()).unwrap();
    }

    pub fn config(&self, diff_ids: &[Digest], config: Value) -> Value {
        let host = Platform::host();
        let config = json!({"os": host.os, "architecture": host.architecture, "config": config,
            "rootfs": {"type": "layers", "diff_ids": diff_ids}});
        self.put_json(CONFIG, &config)
    }

    /// A layout with one image of these layers.
    pub fn image(&self, blobs: &[Blob]) -> Layout {
        let diff_ids: Vec<_> = blobs.iter().map(|b| b.diff_id.clone()).collect();
        let layers: Vec<_> = blobs
            .iter()
            .map(|b| {
                let (digest, size) = self.put(&b.bytes);
                json!({"mediaType": b.media_type, "digest": digest, "size": size})
            })
            .collect();
        let config = self.config(&diff_ids, json!({}));
        let manifest =
            self.put_json(MANIFEST, &json!({"schemaVersion": 2, "config": config, "layers": layers}));
        self.index(json!([manifest]));
        Layout::open(self.layout_dir()).unwrap()
    }

    pub fn unpack(&self, blobs: &[Blob], options: &Options) -> Result<Report, Error> {
        let layout = self.image(blobs);
        let image = layout.image(&Selector::Only, &Platform::host())?;
        unpack(&image.layers, &self.dest(), options)
    }

    /// What surrounds the destination is as it was, and nothing half-done is left.
    pub fn assert_outside_untouched(&self, case: &str) {
        let passwd = self.dir.path().join("out/etc/passwd");
        assert_eq!(std::fs::read_to_string(&passwd).unwrap(), "outside", "{case}");
        let meta = passwd.metadata().unwrap();
        assert_eq!((meta.nlink(), meta.permissions().mode() & 0o7777), (1, 0o644), "{case}");
        let mut names: Vec<_> = std::fs::read_dir(self.dir.path().join("out"))
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .filter(|n| n != "root")
            .collect();
        names.sort();
        assert_eq!(names, ["etc"], "{case}");
        let etc = std::fs::read_dir(self.dir.path().join("out/etc")).unwrap().count();
        assert_eq!(etc, 1, "{case}");
    }
}

/// A tree as text: path to what it is.
pub fn tree(root: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    walk(root, root, &mut all);
    all
}

fn walk(root: &Path, at: &Path, all: &mut BTreeMap<String, String>) {
    for item in std::fs::read_dir(at).unwrap() {
        let path = item.unwrap().path();
        let meta = path.symlink_metadata().unwrap();
        let kind = meta.file_type();
        let mode = meta.permissions().mode() & 0o7777;
        let text = if kind.is_symlink() {
            format!("-> {}", std::fs::read_link(&path).unwrap().display())
        } else if kind.is_dir() {
            format!("dir {mode:o}")
        } else if kind.is_file() {
            let content = std::fs::read(&path).unwrap();
            format!("file {mode:o} {}", String::from_utf8_lossy(&content))
        } else if kind.is_fifo() {
            format!("fifo {mode:o}")
        } else {
            "device".to_owned()
        };
        let name = path.strip_prefix(root).unwrap().display().to_string();
        all.insert(name, text);
        if kind.is_dir() {
            walk(root, &path, all);
        }
    }
}

pub fn expected(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

/// Quick options for tests: no waiting for the disk.
pub fn options() -> Options {
    Options { sync: false, ..Options::default() }
}
