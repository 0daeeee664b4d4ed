//! Which modules may be used.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::AtcError;

/// Patterns of module references, as in Go's `path.Match`: `*` and `?` stand for anything but `/`.
/// Without any pattern everything is allowed.
#[derive(Debug, Clone, Default)]
pub(super) struct Allowed(Option<GlobSet>);

impl Allowed {
    /// Reads the patterns.
    pub(super) fn parse(patterns: &[String]) -> Result<Self, AtcError> {
        if patterns.is_empty() {
            return Ok(Self(None));
        }
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            let wrong = |e: globset::Error| AtcError::Pattern {
                pattern: pattern.clone(),
                reason: e.kind().to_string(),
            };
            set.add(GlobBuilder::new(pattern).literal_separator(true).build().map_err(wrong)?);
        }
        let wrong =
            |e: globset::Error| AtcError::Pattern { pattern: patterns.join(" "), reason: e.to_string() };
        Ok(Self(Some(set.build().map_err(wrong)?)))
    }

    /// Whether a module may be used.
    pub(super) fn allows(&self, url: &str) -> bool {
        self.0.as_ref().is_none_or(|set| set.is_match(url))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(pattern: &str, url: &str) -> bool {
        Allowed::parse(&[pattern.to_owned()]).unwrap().allows(url)
    }

    #[test]
    fn patterns_do_not_cross_slashes() {
        assert!(allows("oci://registry/team/*", "oci://registry/team/app:v1"));
        assert!(!allows("oci://registry/team/*", "oci://registry/team/sub/app:v1"));
        assert!(allows("*.wasm", "flight.wasm"));
        assert!(!allows("*.wasm", "dir/flight.wasm"));
        assert!(allows("/srv/?/x", "/srv/a/x"));
        assert!(!allows("/srv/?x", "/srv//x"));
        assert!(allows("/srv/[ab]", "/srv/b") && !allows("/srv/[ab]", "/srv/c"));
    }

    #[test]
    fn no_pattern_allows_all_and_a_bad_one_is_named() {
        assert!(Allowed::parse(&[]).unwrap().allows("anything"));
        let error = Allowed::parse(&["ok".into(), "bad[".into()]).unwrap_err().to_string();
        assert!(error.contains("\"bad[\""), "{error}");
    }
}
