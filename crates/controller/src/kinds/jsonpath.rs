//! The part of JSONPath that printer columns and scale paths use.
//!
//! `.spec.replicas`, `.status.conditions[?(@.type=="Ready")].status`, `.a['b.c']`, `.a\.b`, `.list[0]`, `.list[*].name`.
//! See "CustomResourceDefinition, additionalPrinterColumns" in Kubernetes' documentation.

use serde_json::Value;

/// Longest path.
const MAX_LENGTH: usize = 1024;

/// A parsed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPath(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Field(String),
    Index(i64),
    All,
    /// Elements whose field at a path equals a text.
    Where(Vec<String>, String),
}

impl JsonPath {
    /// Parses a path. The error says what is not understood.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_LENGTH {
            return Err(format!("a path is at most {MAX_LENGTH} bytes long"));
        }
        let text = text.trim();
        let text = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or(text);
        let mut rest = text.strip_prefix('$').unwrap_or(text);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('[') {
                let (inside, after) = bracket(after)?;
                steps.push(bracket_step(inside)?);
                rest = after;
            } else if let Some(after) = rest.strip_prefix('.') {
                if after.starts_with('.') {
                    return Err("recursive descent (..) is not supported".to_owned());
                }
                let (name, after) = field(after);
                if name == "*" {
                    steps.push(Step::All);
                } else if !name.is_empty() {
                    steps.push(Step::Field(name));
                } else if !after.starts_with('[') && !after.is_empty() {
                    return Err(format!("a field name is missing before {after:?}"));
                }
                rest = after;
            } else {
                return Err(format!("expected . or [ before {rest:?}"));
            }
        }
        Ok(Self(steps))
    }

    /// The first value found.
    #[must_use]
    pub fn first<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        walk(&self.0, object)
    }

    /// The field names, when the path has nothing but fields: what can be written through.
    #[must_use]
    pub fn fields(&self) -> Option<Vec<&str>> {
        self.0
            .iter()
            .map(|step| if let Step::Field(name) = step { Some(name.as_str()) } else { None })
            .collect()
    }
}

fn walk<'a>(steps: &[Step], value: &'a Value) -> Option<&'a Value> {
    let Some((step, rest)) = steps.split_first() else { return Some(value) };
    match step {
        Step::Field(name) => walk(rest, value.get(name)?),
        Step::Index(index) => {
            let list = value.as_array()?;
            let at = if *index < 0 {
                list.len().checked_sub(usize::try_from(-index).ok()?)?
            } else {
                usize::try_from(*index).ok()?
            };
            walk(rest, list.get(at)?)
        }
        Step::All => match value {
            Value::Array(list) => list.iter().find_map(|item| walk(rest, item)),
            Value::Object(map) => map.values().find_map(|item| walk(rest, item)),
            _ => None,
        },
        Step::Where(path, text) => value.as_array()?.iter().find_map(|item| {
            let found = path.iter().try_fold(item, |at, name| at.get(name))?;
            let equal = match found {
                Value::String(s) => s == text,
                other => *text == other.to_string().as_str(),
            };
            if equal { walk(rest, item) } else { None }
        }),
    }
}

/// A field name up to the next unescaped dot or bracket.
fn field(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if escaped {
            name.push(c);
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == '.' || c == '[' {
            return (name, text.get(at..).unwrap_or_default());
        } else {
            name.push(c);
        }
    }
    (name, "")
}

/// What is between brackets, and what follows them. Quotes hide brackets.
fn bracket(text: &str) -> Result<(&str, &str), String> {
    let mut quote = None;
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') if depth > 0 => depth -= 1,
            (None, ']') => {
                return Ok((text.get(..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default()));
            }
            _ => {}
        }
    }
    Err("a bracket is not closed".to_owned())
}

fn unquote(text: &str) -> Option<&str> {
    ['\'', '"'].iter().find_map(|q| text.strip_prefix(*q).and_then(|t| t.strip_suffix(*q)))
}

fn bracket_step(inside: &str) -> Result<Step, String> {
    let inside = inside.trim();
    if inside == "*" {
        return Ok(Step::All);
    }
    if let Some(name) = unquote(inside) {
        return Ok(Step::Field(name.to_owned()));
    }
    if let Some(filter) = inside.strip_prefix("?(").and_then(|t| t.strip_suffix(')')) {
        let (left, right) =
            filter.split_once("==").ok_or_else(|| format!("only == is supported in filters: {filter:?}"))?;
        let path =
            left.trim().strip_prefix("@.").ok_or_else(|| format!("a filter begins with @.: {filter:?}"))?;
        let right = right.trim();
        let text = unquote(right).unwrap_or(right);
        return Ok(Step::Where(path.split('.').map(str::to_owned).collect(), text.to_owned()));
    }
    inside.parse().map(Step::Index).map_err(|_| format!("not understood in brackets: {inside:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn finds_what_columns_ask_for() {
        let object = json!({
            "spec": {"n": 3, "a.b": "dot", "list": [{"x": 1}, {"x": 2}]},
            "status": {"conditions": [{"type": "A", "status": "False"}, {"type": "Ready", "status": "True"}]},
        });
        for (path, want) in [
            (".spec.n", json!(3)),
            ("$.spec.n", json!(3)),
            ("{.spec.n}", json!(3)),
            (r".spec.a\.b", json!("dot")),
            (".spec['a.b']", json!("dot")),
            (".spec.list[1].x", json!(2)),
            (".spec.list[-1].x", json!(2)),
            (".spec.list[*].x", json!(1)),
            (r#".status.conditions[?(@.type=="Ready")].status"#, json!("True")),
            (r".status.conditions[?(@.type=='A')].status", json!("False")),
        ] {
            assert_eq!(JsonPath::parse(path).unwrap().first(&object), Some(&want), "{path}");
        }
        for path in
            [".spec.none", ".spec.n.x", ".spec.list[9]", r#".status.conditions[?(@.type=="B")].status"#]
        {
            assert_eq!(JsonPath::parse(path).unwrap().first(&object), None, "{path}");
        }
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        for path in ["spec", "..a", ".a[", ".a[?(@.x>1)]", ".a[x]"] {
            assert!(JsonPath::parse(path).is_err(), "{path}");
        }
    }
}
