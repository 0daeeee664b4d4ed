use std::fmt;

use serde::{Deserialize, Serialize};

/// An operating system and processor, in Go's words as OCI uses them (image-index.md, "platform").
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Platform {
    /// For example `linux`.
    pub os: String,
    /// For example `amd64`.
    pub architecture: String,
    /// For example `v8`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
}

impl Platform {
    /// The platform of this program.
    #[must_use]
    pub fn host() -> Self {
        let (architecture, variant) = match std::env::consts::ARCH {
            "x86_64" => ("amd64", None),
            "x86" => ("386", None),
            "aarch64" => ("arm64", Some("v8")),
            "arm" => ("arm", Some("v7")),
            "powerpc64" => ("ppc64le", None),
            other => (other, None),
        };
        Self {
            os: "linux".to_owned(),
            architecture: architecture.to_owned(),
            variant: variant.map(str::to_owned),
        }
    }

    /// How well `self` serves a machine that wants `wanted`: higher is better, `None` does not run there.
    pub(crate) fn serves(&self, wanted: &Self) -> Option<u32> {
        if self.os != wanted.os || self.architecture != wanted.architecture {
            return None;
        }
        let version = |p: &Self| -> u32 {
            let default = if p.architecture == "arm64" { 8 } else { 0 };
            p.variant
                .as_deref()
                .and_then(|v| v.strip_prefix('v'))
                .and_then(|v| v.parse().ok())
                .unwrap_or(default)
        };
        let (has, wants) = (version(self), version(wanted));
        // An older variant of the same architecture runs on a newer processor, never the other way round.
        match (self.architecture.as_str(), has) {
            ("arm64" | "arm" | "amd64", _) if has <= wants.max(1) => Some(has),
            ("arm64" | "arm" | "amd64", _) => None,
            _ => Some(u32::from(self.variant == wanted.variant)),
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        match &self.variant {
            Some(variant) => write!(f, "/{variant}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn platform(text: &str) -> Platform {
        let mut parts = text.split('/').map(str::to_owned);
        Platform { os: parts.next().unwrap(), architecture: parts.next().unwrap(), variant: parts.next() }
    }

    #[test]
    fn older_variants_run_on_newer_processors_only() {
        for (has, wants, runs) in [
            ("linux/amd64", "linux/amd64", true),
            ("linux/amd64/v3", "linux/amd64", false),
            ("linux/amd64/v2", "linux/amd64/v3", true),
            ("linux/arm64", "linux/arm64/v8", true),
            ("linux/arm64/v8", "linux/arm64/v8", true),
            ("linux/arm/v6", "linux/arm/v7", true),
            ("linux/arm/v7", "linux/arm/v6", false),
            ("windows/amd64", "linux/amd64", false),
            ("linux/s390x", "linux/s390x", true),
            ("linux/386", "linux/amd64", false),
        ] {
            assert_eq!(platform(has).serves(&platform(wants)).is_some(), runs, "{has} on {wants}");
        }
    }
}
