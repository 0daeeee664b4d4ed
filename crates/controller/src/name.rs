//! Names: which are allowed, and how `generateName` makes one.
//!
//! The rules are Kubernetes' ("Object Names and IDs"): DNS-1123 subdomains and labels.

/// Longest DNS-1123 subdomain.
const MAX_SUBDOMAIN: usize = 253;
/// Longest DNS-1123 label.
const MAX_LABEL: usize = 63;
/// Characters that `generateName` adds.
const SUFFIX: usize = 5;
/// Consonants and digits that form no words, as in Kubernetes.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Which names a kind allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NameRule {
    /// DNS-1123 subdomain, the usual rule.
    #[default]
    Subdomain,
    /// DNS-1123 label: namespaces.
    Label,
}

const SUBDOMAIN_HELP: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_HELP: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

impl NameRule {
    /// What is wrong with `name`, in Kubernetes' words, or `None`.
    #[must_use]
    pub fn check(self, name: &str) -> Option<String> {
        match self {
            Self::Label if name.len() > MAX_LABEL => Some("must be no more than 63 characters".to_owned()),
            Self::Label => (!is_label(name)).then(|| LABEL_HELP.to_owned()),
            Self::Subdomain if name.len() > MAX_SUBDOMAIN => {
                Some("must be no more than 253 characters".to_owned())
            }
            Self::Subdomain => (!name.split('.').all(is_label)).then(|| SUBDOMAIN_HELP.to_owned()),
        }
    }

    /// What is wrong with `prefix` as a `generateName`, or `None`. A trailing dash is allowed there.
    #[must_use]
    pub fn check_prefix(self, prefix: &str) -> Option<String> {
        let body = prefix.strip_suffix('-').map_or_else(|| prefix.to_owned(), |rest| format!("{rest}a"));
        self.check(&body)
    }

    fn max(self) -> usize {
        match self {
            Self::Label => MAX_LABEL,
            Self::Subdomain => MAX_SUBDOMAIN,
        }
    }

    /// A new name from `prefix`, cut so that the random suffix fits. Not predictable, not guaranteed free.
    #[must_use]
    pub fn generate(self, prefix: &str) -> String {
        // Kubernetes cuts at 63 - 5 whatever the rule, so that the name can be a label value.
        let keep = self.max().min(MAX_LABEL) - SUFFIX;
        let mut name: String = prefix.chars().take(keep).collect();
        let random = uuid::Uuid::new_v4().as_u128();
        let base = ALPHABET.len() as u128;
        let mut rest = random;
        for _ in 0..SUFFIX {
            let index = usize::try_from(rest % base).unwrap_or(0);
            rest /= base;
            name.push(char::from(ALPHABET.get(index).copied().unwrap_or(b'x')));
        }
        name
    }
}

/// True for a DNS-1123 label of any length.
fn is_label(label: &str) -> bool {
    let bytes = label.as_bytes();
    let edge = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-')
}

/// True when `name` can be one segment of a URL path: the least that is asked of the names of any kind.
#[must_use]
pub(crate) fn is_path_segment(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains('/') && !name.contains('%')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subdomains_and_labels() {
        for good in ["a", "a-b", "a.b", "0", "a.b-c.d9"] {
            assert_eq!(NameRule::Subdomain.check(good), None, "{good}");
        }
        for bad in ["", "A", "a_b", "-a", "a-", ".a", "a..b", "a.", "ä", "a b", "a/b"] {
            assert!(NameRule::Subdomain.check(bad).is_some(), "{bad}");
        }
        assert!(NameRule::Label.check("a.b").is_some());
        assert!(NameRule::Label.check(&"a".repeat(64)).is_some());
        assert_eq!(NameRule::Label.check(&"a".repeat(63)), None);
        assert!(NameRule::Subdomain.check(&"a".repeat(254)).is_some());
    }

    #[test]
    fn generated_names_are_allowed_and_differ() {
        let long = "a".repeat(300);
        for prefix in ["x-", "x", long.as_str()] {
            let one = NameRule::Subdomain.generate(prefix);
            assert_eq!(NameRule::Subdomain.check(&one), None);
            assert!(one.len() <= MAX_LABEL);
            assert_ne!(one, NameRule::Subdomain.generate(prefix));
        }
        assert_eq!(NameRule::Subdomain.check_prefix("job-"), None);
        assert!(NameRule::Subdomain.check_prefix("Job-").is_some());
    }
}
