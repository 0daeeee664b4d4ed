//! Images on a node: found in layouts, unpacked once each.

use std::path::{Path, PathBuf};

use horchestra_oci::{Image, Layout, Options, Platform, Selector, Source, unpack};

use crate::{Error, Result};

/// Where images come from and where they are unpacked.
#[derive(Debug, Clone)]
pub(crate) struct Images {
    /// Unpacked ones, by digest.
    pub(crate) store: PathBuf,
    /// A layout, or a directory of layouts named as repositories are, for images of registries.
    pub(crate) layouts: Option<PathBuf>,
}

impl Images {
    /// Finds an image and unpacks it, if that has not been done yet. Blocks.
    pub(crate) fn get(&self, reference: &str) -> Result<(Image, PathBuf)> {
        let image = self.find(reference)?;
        let root = self.store.join(image.digest.to_string().replace(':', "-"));
        if !root.is_dir() {
            std::fs::create_dir_all(&self.store)
                .map_err(|e| Error::io(self.store.display().to_string(), e))?;
            match unpack(&image.layers, &root, &Options::default()) {
                Ok(_) | Err(horchestra_oci::Error::Exists { .. }) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok((image, root))
    }

    fn find(&self, reference: &str) -> Result<Image> {
        let (dir, select) = match reference.parse::<Source>()? {
            Source::Layout { dir, select } => (dir, select),
            Source::Registry(image) => {
                let Some(layouts) = &self.layouts else {
                    return Err(Error::unsupported(
                        format!("pulling {reference}"),
                        "this node has no registry client yet; name a layout with oci:DIRECTORY[:TAG], or start it with --images",
                    ));
                };
                let tag = image.tag().unwrap_or("latest").to_owned();
                self.layout(layouts, image.repository(), &tag, reference)?
            }
        };
        Ok(Layout::open(dir)?.image(&select, &Platform::host())?)
    }

    /// The layout of a repository below a directory, or the directory itself with the name as a tag.
    fn layout(
        &self,
        layouts: &Path,
        repository: &str,
        tag: &str,
        reference: &str,
    ) -> Result<(PathBuf, Selector)> {
        let short = repository.strip_prefix("library/").unwrap_or(repository);
        for name in [repository, short] {
            // A repository has no `..` and no leading slash: it was parsed as one.
            let dir = layouts.join(name);
            if dir.join("oci-layout").is_file() {
                return Ok((dir, Selector::Tag(tag.to_owned())));
            }
        }
        if layouts.join("oci-layout").is_file() {
            let known: Vec<String> = Layout::open(layouts)?.tags().map(str::to_owned).collect();
            let wanted = [format!("{short}-{tag}"), short.replace('/', "-")];
            if let Some(tag) = wanted.iter().find(|w| known.contains(w)) {
                return Ok((layouts.to_owned(), Selector::Tag(tag.clone())));
            }
        }
        Err(Error::unsupported(
            format!("pulling {reference}"),
            format!(
                "{} has no layout of it; copy it there with `skopeo copy docker://{reference} oci:{}/{short}:{tag}`",
                layouts.display(),
                layouts.display()
            ),
        ))
    }
}
