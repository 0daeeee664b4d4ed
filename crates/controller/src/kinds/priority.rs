//! The order of API versions: `v2`, `v1`, `v1beta2`, `v1beta1`, `v1alpha1`, then anything else by name.
//!
//! See "Versions in CustomResourceDefinitions, Version priority".

use std::cmp::Reverse;

/// What sorts versions with the highest priority first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Priority {
    /// `vN`, `vNbetaM`, `vNalphaM`.
    Known(Stage, Reverse<u32>, Reverse<u32>),
    /// Anything else.
    Other(String),
}

/// Stable before beta before alpha.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// `vN`
    Stable,
    /// `vNbetaM`
    Beta,
    /// `vNalphaM`
    Alpha,
}

/// The priority of the version `name`.
pub(crate) fn of(name: &str) -> Priority {
    known(name).unwrap_or_else(|| Priority::Other(name.to_owned()))
}

fn known(name: &str) -> Option<Priority> {
    let rest = name.strip_prefix('v')?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (major, rest) = rest.split_at_checked(digits)?;
    let major = major.parse().ok()?;
    let (stage, minor) = if rest.is_empty() {
        (Stage::Stable, 0)
    } else if let Some(minor) = rest.strip_prefix("beta") {
        (Stage::Beta, minor.parse().ok()?)
    } else {
        (Stage::Alpha, rest.strip_prefix("alpha")?.parse().ok()?)
    };
    Some(Priority::Known(stage, Reverse(major), Reverse(minor)))
}

#[cfg(test)]
mod tests {
    #[test]
    fn kubernetes_own_example() {
        // The list of Kubernetes' documentation.
        let sorted =
            ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"];
        let mut shuffled = sorted;
        shuffled.reverse();
        shuffled.sort_by_key(|v| super::of(v));
        assert_eq!(shuffled, sorted);
    }
}
