//! Patterns as Go understands them.

use regex::{Regex, RegexBuilder};

/// Longest pattern, in bytes.
const MAX_LENGTH: usize = 16 * 1024;
/// Most memory of one compiled pattern, in bytes.
const MAX_SIZE: usize = 2 * 1024 * 1024;

/// A compiled `pattern`. It matches anywhere in the text unless it is anchored.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    source: Box<str>,
    regex: Regex,
}

impl Pattern {
    pub(super) fn compile(source: &str) -> Result<Self, String> {
        if source.len() > MAX_LENGTH {
            return Err(format!("must be at most {MAX_LENGTH} bytes"));
        }
        let regex = RegexBuilder::new(&translate(source))
            .size_limit(MAX_SIZE)
            .nest_limit(100)
            .build()
            .map_err(|error| format!("must be a valid regular expression, but isn't: {error}"))?;
        Ok(Self { source: source.into(), regex })
    }

    pub(super) fn source(&self) -> &str {
        &self.source
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

/// From Go's syntax (RE2) to that of the regex crate. They differ in little: Go's `\d \w \s \b` are ASCII, `{` that is
/// no repetition and `[`, `&`, `~` inside a class stand for themselves, and `\Q..\E` quotes.
fn translate(source: &str) -> String {
    let mut out = String::with_capacity(source.len() + 8);
    let mut rest = source;
    let mut class = false;
    while let Some(c) = rest.chars().next() {
        let after = rest.get(c.len_utf8()..).unwrap_or_default();
        if c == '\\' {
            if let Some(quoted) = after.strip_prefix('Q') {
                let (text, next) = quoted.split_once("\\E").unwrap_or((quoted, ""));
                out.push_str(&regex::escape(text));
                rest = next;
                continue;
            }
            let Some(escaped) = after.chars().next() else {
                out.push(c);
                break;
            };
            match escaped {
                'd' => out.push_str("[0-9]"),
                'D' => out.push_str("[^0-9]"),
                'w' => out.push_str("[0-9A-Za-z_]"),
                'W' => out.push_str("[^0-9A-Za-z_]"),
                's' => out.push_str("[\\t\\n\\f\\r ]"),
                'S' => out.push_str("[^\\t\\n\\f\\r ]"),
                // A class by name, \p{Greek}: the name is taken as it stands.
                'p' | 'P' => {
                    let end = after
                        .strip_prefix(escaped)
                        .filter(|rest| rest.starts_with('{'))
                        .and_then(|rest| rest.find('}'));
                    let (name, next) = after.split_at(end.map_or(1, |end| end + 2));
                    out.push('\\');
                    out.push_str(name);
                    rest = next;
                    continue;
                }
                'b' if !class => out.push_str("(?-u:\\b)"),
                _ => {
                    out.push('\\');
                    out.push(escaped);
                }
            }
            rest = after.get(escaped.len_utf8()..).unwrap_or_default();
            continue;
        }
        match c {
            '[' if class && !after.starts_with(':') => out.push_str("\\["),
            '[' if class => {
                // A named class, [:alpha:], stands as it is.
                let end = after.find(":]").map_or(after.len(), |at| at + 2);
                out.push('[');
                out.push_str(after.get(..end).unwrap_or_default());
                rest = after.get(end..).unwrap_or_default();
                continue;
            }
            '&' | '~' if class => {
                out.push('\\');
                out.push(c);
            }
            '[' => {
                class = true;
                out.push('[');
                // The first `]` of a class stands for itself.
                let (caret, body) = after.strip_prefix('^').map_or(("", after), |body| ("^", body));
                out.push_str(caret);
                rest = body;
                if let Some(body) = body.strip_prefix(']') {
                    out.push_str("\\]");
                    rest = body;
                }
                continue;
            }
            ']' if class => {
                class = false;
                out.push(']');
            }
            ']' => out.push_str("\\]"),
            '{' if !class && !is_repetition(after) => out.push_str("\\{"),
            '}' if !class && !closes_repetition(&out) => out.push_str("\\}"),
            _ => out.push(c),
        }
        rest = after;
    }
    out
}

/// `n}`, `n,}` or `n,m}`.
fn is_repetition(after: &str) -> bool {
    let Some((inside, _)) = after.split_once('}') else { return false };
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let (low, high) = inside.split_once(',').unwrap_or((inside, ""));
    !low.is_empty() && digits(low) && digits(high)
}

/// Whether what was written ends in an open repetition.
fn closes_repetition(out: &str) -> bool {
    let numbers = out.trim_end_matches(|c: char| c.is_ascii_digit() || c == ',');
    numbers.len() < out.len() && numbers.ends_with('{') && !numbers.ends_with("\\{")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Pattern::compile(pattern).expect(pattern).matches(text)
    }

    #[test]
    fn means_what_go_means() {
        assert!(matches(r"^(\d+|\*)(/\d+)?(\s+(\d+|\*)(/\d+)?){4}$", "*/5 * * * *"));
        assert!(!matches(r"^(\d+|\*)(/\d+)?(\s+(\d+|\*)(/\d+)?){4}$", "* * * *"));
        // Arabic-Indic digits, and a no-break space, are neither \d nor \s.
        assert!(!matches(r"^\d$", "\u{0661}") && !matches(r"^\s$", "\u{a0}") && !matches(r"^\w$", "é"));
        assert!(matches(r"^[\d\-]+$", "12-3") && matches(r"^[^\d]$", "x") && matches(r"^[\S]$", "é"));
        assert!(
            matches(r"^[[a]$", "[")
                && matches("^[]a]$", "]")
                && matches("^[^]a]$", "b")
                && matches(r"^[&&a]$", "&")
        );
        assert!(
            matches("^a{$", "a{")
                && matches("^{a}$", "{a}")
                && matches("^a{2}$", "aa")
                && matches("^a{1,}$", "aaa")
        );
        assert!(matches(r"^\Qa.b\E$", "a.b") && !matches(r"^\Qa.b\E$", "axb"));
        assert!(matches(r"^[[:alpha:]]+$", "ab") && !matches(r"^[[:alpha:]]+$", "a1"));
        assert!(matches(r"^\p{Greek}$", "α") && matches(r"\bfoo\b", "a foo b"));
        assert!(matches("b", "abc"), "not anchored");
    }

    #[test]
    fn refuses_what_is_no_pattern() {
        for bad in ["(", "[a", "(?=a)", r"\"] {
            assert!(Pattern::compile(bad).is_err(), "{bad}");
        }
        assert!(Pattern::compile(&format!("{}a{}", "(".repeat(1000), ")".repeat(1000))).is_err());
        assert!(Pattern::compile("(((a{1000}){1000}){1000})").is_err());
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_answered(text in "[a\\\\\\[\\]{}()^$*+?.,1&~:QEdwp-]{0,16}") {
            let _ = Pattern::compile(&text);
        }
    }
}
