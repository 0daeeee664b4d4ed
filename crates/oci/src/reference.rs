use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::layout::Selector;
use crate::{Digest, Error, Result};

/// The name of an image as Docker and containerd read it (github.com/distribution/reference).
///
/// `postgres` is `docker.io/library/postgres:latest`; a first part with a dot, a port or the name `localhost`
/// is a registry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ImageRef {
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

const DOCKER_HUB: &str = "docker.io";
/// Longest registry and repository together, as the distribution specification has it.
const MAX_NAME: usize = 255;
const MAX_TAG: usize = 128;

impl ImageRef {
    /// Host and, where given, port.
    #[must_use]
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// The path below the registry.
    #[must_use]
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The tag; `latest` where neither tag nor digest was given.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest, which decides where there is one.
    #[must_use]
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }
}

impl fmt::Display for ImageRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}

impl FromStr for ImageRef {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bad =
            |problem: &str| Error::Reference { reference: text.to_owned(), problem: problem.to_owned() };
        if text.contains("://") {
            return Err(bad("no scheme belongs in front of it"));
        }
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (
                rest,
                Some(digest.parse().map_err(|_| bad("the digest after @ is not sha256:HEX or sha512:HEX"))?),
            ),
            None => (text, None),
        };
        let slash = rest.rfind('/').map_or(0, |at| at + 1);
        let (name, tag) = match rest.get(slash..).and_then(|last| last.find(':')) {
            Some(at) => (
                rest.get(..slash + at).unwrap_or_default(),
                Some(rest.get(slash + at + 1..).unwrap_or_default().to_owned()),
            ),
            None => (rest, None),
        };
        if tag.as_deref().is_some_and(|tag| !is_tag(tag)) {
            return Err(bad(
                "a tag is up to 128 letters, digits, '_', '.' and '-', and starts with none of the last two",
            ));
        }
        if name.len() == 64 && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(bad("64 hexadecimal digits are an image's identity, not its name"));
        }
        let (registry, path) = match name.split_once('/') {
            Some((first, path)) if is_registry(first) => (first, path),
            _ => (DOCKER_HUB, name),
        };
        let registry = if registry == "index.docker.io" { DOCKER_HUB } else { registry };
        if !is_host(registry) {
            return Err(bad("the registry is not HOST or HOST:PORT"));
        }
        let repository = match registry {
            DOCKER_HUB if !path.contains('/') => format!("library/{path}"),
            _ => path.to_owned(),
        };
        if path.is_empty() || !path.split('/').all(is_component) {
            return Err(bad(
                "each part of the name is lower-case letters and digits, joined by '.', '_', '__' or dashes",
            ));
        }
        if registry.len() + 1 + repository.len() > MAX_NAME {
            return Err(bad("the name is longer than 255 characters"));
        }
        let tag = tag.or_else(|| digest.is_none().then(|| "latest".to_owned()));
        Ok(Self { registry: registry.to_owned(), repository, tag, digest })
    }
}

fn is_registry(first: &str) -> bool {
    first.contains(['.', ':']) || first == "localhost" || first.bytes().any(|b| b.is_ascii_uppercase())
}

fn is_host(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[').and_then(|t| t.split_once(']')) {
        Some((v6, rest)) => {
            if v6.is_empty() || !v6.bytes().all(|b| b.is_ascii_hexdigit() || b == b':') {
                return false;
            }
            return rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let label = |l: &str| {
        !l.is_empty()
            && !l.starts_with('-')
            && !l.ends_with('-')
            && l.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    host.split('.').all(label) && port.is_none_or(is_port)
}

fn is_port(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) && text.parse::<u16>().is_ok_and(|p| p > 0)
}

pub(crate) fn is_tag(text: &str) -> bool {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    text.len() <= MAX_TAG
        && text.bytes().next().is_some_and(word)
        && text.bytes().all(|b| word(b) || b == b'.' || b == b'-')
}

/// `[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*`
fn is_component(text: &str) -> bool {
    let mut separator = String::new();
    let mut before = false;
    for c in text.chars() {
        if c.is_ascii_lowercase() || c.is_ascii_digit() {
            let joined =
                matches!(separator.as_str(), "" | "." | "_" | "__") || separator.bytes().all(|b| b == b'-');
            if !joined || (!before && !separator.is_empty()) {
                return false;
            }
            separator.clear();
            before = true;
        } else if matches!(c, '.' | '_' | '-') {
            separator.push(c);
        } else {
            return false;
        }
    }
    before && separator.is_empty()
}

/// Where an image comes from: a registry, or a layout on this machine as `oci:DIR[:TAG|@DIGEST]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// An image of a registry.
    Registry(ImageRef),
    /// An image of a layout directory.
    Layout {
        /// The directory with `index.json`.
        dir: PathBuf,
        /// Which of its images.
        select: Selector,
    },
}

impl FromStr for Source {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let Some(rest) = text.strip_prefix("oci:") else {
            return Ok(Self::Registry(text.parse()?));
        };
        let bad =
            |problem: &str| Error::Reference { reference: text.to_owned(), problem: problem.to_owned() };
        let (dir, select) =
            if let Some((dir, digest)) = rest.rsplit_once('@').filter(|(_, d)| d.contains(':')) {
                (dir, Selector::Digest(digest.parse().map_err(|_| bad("the digest after @ is malformed"))?))
            } else {
                match rest.rsplit_once(':') {
                    // A colon before a slash belongs to the directory.
                    Some((dir, tag)) if !tag.contains('/') => {
                        if !is_tag(tag) {
                            return Err(bad("the tag after the last colon is malformed"));
                        }
                        (dir, Selector::Tag(tag.to_owned()))
                    }
                    _ => (rest, Selector::Only),
                }
            };
        if dir.is_empty() || dir.contains(['\0', '\n']) {
            return Err(bad("oci: needs a directory, as in oci:/srv/image:1.0"));
        }
        Ok(Self::Layout { dir: dir.into(), select })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registry(reference) => reference.fmt(f),
            Self::Layout { dir, select } => {
                write!(f, "oci:{}", dir.display())?;
                match select {
                    Selector::Only => Ok(()),
                    Selector::Tag(tag) => write!(f, ":{tag}"),
                    Selector::Digest(digest) => write!(f, "@{digest}"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Expectations: github.com/distribution/reference, normalize_test.go and reference_test.go in words.
    #[test]
    fn reads_references_as_docker_does() {
        let hex = "a".repeat(64);
        for (text, full) in [
            ("postgres", "docker.io/library/postgres:latest".to_owned()),
            ("postgres:18-alpine", "docker.io/library/postgres:18-alpine".to_owned()),
            ("docker.io/library/postgres:18-alpine", "docker.io/library/postgres:18-alpine".to_owned()),
            ("index.docker.io/postgres", "docker.io/library/postgres:latest".to_owned()),
            ("me/app", "docker.io/me/app:latest".to_owned()),
            ("localhost/app", "localhost/app:latest".to_owned()),
            ("localhost:5000/app", "localhost:5000/app:latest".to_owned()),
            ("registry.local:5000/a/b/c:v1", "registry.local:5000/a/b/c:v1".to_owned()),
            ("[::1]:5000/app:1", "[::1]:5000/app:1".to_owned()),
            ("a__b/c-d.e_f", "docker.io/a__b/c-d.e_f:latest".to_owned()),
            ("x@sha256:HEX", format!("docker.io/library/x@sha256:{hex}")),
            ("r.io/x:1@sha256:HEX", format!("r.io/x:1@sha256:{hex}")),
        ] {
            let text = text.replace("HEX", &hex);
            assert_eq!(text.parse::<ImageRef>().unwrap().to_string(), full, "{text}");
        }
    }

    #[test]
    fn refuses_what_docker_refuses() {
        let long = format!("r.io/{}", "a".repeat(256));
        let hex = "0".repeat(64);
        for text in [
            "",
            ":",
            "/",
            "UPPER",
            "a//b",
            "/a",
            "a/",
            "a:",
            "a:-x",
            "a b",
            "a:b c",
            "http://a/b",
            "oci://a",
            "a@sha256:12",
            "a@md5:00",
            "-a",
            "a..b",
            "a___b",
            "r.io:99999/a",
            "r.io:x/a",
            "a:\n",
            "a\0",
            &long,
            &hex,
        ] {
            assert!(text.parse::<ImageRef>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn local_layouts() {
        let hex = "a".repeat(64);
        let layout = |dir: &str, select| Source::Layout { dir: dir.into(), select };
        for (text, source) in [
            ("oci:/srv/x".to_owned(), layout("/srv/x", Selector::Only)),
            ("oci:/srv/x:1.0".to_owned(), layout("/srv/x", Selector::Tag("1.0".into()))),
            ("oci:/a:b/x".to_owned(), layout("/a:b/x", Selector::Only)),
            (
                format!("oci:x@sha256:{hex}"),
                layout("x", Selector::Digest(format!("sha256:{hex}").parse().unwrap())),
            ),
        ] {
            let parsed: Source = text.parse().unwrap();
            assert_eq!(parsed, source);
            assert_eq!(parsed.to_string(), text);
        }
        for text in ["oci:", "oci::x", "oci:x:", "oci:x@sha256:1"] {
            assert!(text.parse::<Source>().is_err(), "{text}");
        }
    }
}
