//! An image for workloads of tests.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use horchestra_oci::{FileSpec, ImageSpec, LayoutBuilder};

use crate::root;

/// A directory of layouts with the image `busybox`, in which there is just enough of a shell.
///
/// # Panics
/// Where it cannot be made.
pub fn images() -> PathBuf {
    static DIRECTORY: OnceLock<tempfile::TempDir> = OnceLock::new();
    let directory = DIRECTORY.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        let shell = directory.path().join("sh");
        let source = root().join("xtask/demo/sh.rs");
        let mut rustc = Command::new("rustc");
        rustc
            .args(["--edition", "2024", "-O", "-C", "target-feature=+crt-static", "-o"])
            .arg(&shell)
            .arg(source);
        let built = rustc.output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let content = fs::read(&shell).unwrap();
        let file = FileSpec { path: "bin/sh".into(), content, mode: 0o755 };
        let image = ImageSpec { files: vec![file], cmd: vec!["sh".into()], ..ImageSpec::default() };
        LayoutBuilder::create(directory.path().join("images/busybox"))
            .unwrap()
            .image("latest", &image)
            .unwrap();
        directory
    });
    directory.path().join("images")
}
