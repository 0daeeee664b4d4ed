//! Packs programs into a small image: `image LAYOUT TAG SOURCE:PATH... [-- COMMAND...]`.
//!
//! The programs must be static, since the image holds nothing else.

use std::error::Error;

use horchestra_oci::{FileSpec, ImageSpec, LayoutBuilder};

const USAGE: &str = "usage: image LAYOUT TAG SOURCE:PATH... [-- COMMAND...]";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (files, cmd) = match arguments.iter().position(|a| a == "--") {
        Some(at) => (arguments.get(..at).unwrap_or_default(), arguments.get(at + 1..).unwrap_or_default()),
        None => (arguments.as_slice(), [].as_slice()),
    };
    let [layout, tag, files @ ..] = files else { return Err(USAGE.into()) };
    let mut spec = ImageSpec { cmd: cmd.to_vec(), ..ImageSpec::default() };
    for file in files {
        let (source, path) = file.rsplit_once(':').ok_or(USAGE)?;
        let content = std::fs::read(source).map_err(|e| format!("{source}: {e}"))?;
        spec.files.push(FileSpec { path: path.to_owned(), content, mode: 0o755 });
    }
    println!("{}", LayoutBuilder::create(layout)?.image(tag, &spec)?);
    Ok(())
}
