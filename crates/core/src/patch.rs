//! JSON merge patch (RFC 7386) and JSON patch (RFC 6902), with bounds on what a patch may cost.

use json_patch::jsonptr::{Pointer, PointerBuf};
use json_patch::{PatchErrorKind, PatchOperation};
use serde_json::Value;

use crate::json::{Limits, depth_within};

/// Most operations in one JSON patch; the kube-apiserver's own limit.
pub const MAX_OPERATIONS: usize = 10_000;
/// Deepest nesting of a patched object.
pub const MAX_DEPTH: usize = Limits::MAX_DEPTH;
/// Most bytes that the `copy` operations of one patch may add; the kube-apiserver's own limit.
pub const MAX_COPIED: usize = 3 * 1024 * 1024;
/// Most values that one patch may move or look at, so that many small operations on a large list end.
const MAX_WORK: usize = 50_000_000;

/// Why a patch was refused. The object is then as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatchError {
    /// The patch itself is not understood.
    #[error("the patch is malformed: {0}")]
    Malformed(String),
    /// More than [`MAX_OPERATIONS`].
    #[error("the patch has {actual} operations; the limit is {MAX_OPERATIONS}: send it in parts")]
    TooManyOperations {
        /// How many it has.
        actual: usize,
    },
    /// An operation does not fit the object: a path is not there, or a `test` fails.
    #[error("operation {operation} at {path:?}: {reason}")]
    Failed {
        /// Position of the operation, from 0.
        operation: usize,
        /// Its JSON pointer.
        path: String,
        /// Why.
        reason: String,
    },
    /// The result would be nested deeper than [`MAX_DEPTH`].
    #[error("the patched object would be nested more than {MAX_DEPTH} deep")]
    TooDeep,
    /// The copies or the work of the patch pass their bounds.
    #[error(
        "the patch copies or moves too much (at most {MAX_COPIED} bytes of copies): send the values themselves"
    )]
    TooMuch,
}

/// Applies a JSON merge patch: objects merge, `null` removes, all else replaces.
///
/// # Errors
/// [`PatchError::TooDeep`].
pub fn merge_patch(target: &mut Value, patch: &Value) -> Result<(), PatchError> {
    if !depth_within(patch, MAX_DEPTH) || !depth_within(target, MAX_DEPTH) {
        return Err(PatchError::TooDeep);
    }
    merge(target, patch);
    Ok(())
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    if let Value::Object(target) = target {
        for (key, value) in patch {
            if value.is_null() {
                target.remove(key);
            } else {
                merge(target.entry(key.as_str()).or_insert(Value::Null), value);
            }
        }
    }
}

/// Applies a JSON patch, all of it or nothing.
///
/// # Errors
/// [`PatchError`] names the operation and its path.
pub fn json_patch(target: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let Value::Array(list) = patch else {
        return Err(PatchError::Malformed("a JSON patch is a list of operations".to_owned()));
    };
    if list.len() > MAX_OPERATIONS {
        return Err(PatchError::TooManyOperations { actual: list.len() });
    }
    let mut operations = Vec::with_capacity(list.len());
    for (position, operation) in list.iter().enumerate() {
        operations.push(
            read(operation)
                .map_err(|reason| PatchError::Malformed(format!("operation {position}: {reason}")))?,
        );
    }
    let mut budget = Budget { depth: measure(target)?, copied: 0, work: 0 };
    let mut patched = target.clone();
    for (position, operation) in operations.into_iter().enumerate() {
        budget.charge(&patched, &operation)?;
        json_patch::patch_unsafe(&mut patched, std::slice::from_ref(&operation)).map_err(|error| {
            let path = operation.path().as_str().to_owned();
            PatchError::Failed { operation: position, path, reason: reason(&error.kind) }
        })?;
    }
    *target = patched;
    Ok(())
}

fn read(operation: &Value) -> Result<PatchOperation, String> {
    serde_json::from_value(operation.clone()).map_err(|error| error.to_string())
}

fn reason(kind: &PatchErrorKind) -> String {
    match kind {
        PatchErrorKind::TestFailed => "the value is another than the test expects".to_owned(),
        PatchErrorKind::InvalidPointer => "there is nothing at this path".to_owned(),
        PatchErrorKind::InvalidFromPointer => "there is nothing at the path \"from\"".to_owned(),
        other => other.to_string(),
    }
}

fn measure(value: &Value) -> Result<usize, PatchError> {
    fn depth(value: &Value, left: usize) -> Option<usize> {
        let mut children: &mut dyn Iterator<Item = &Value> = match value {
            Value::Array(list) => &mut list.iter(),
            Value::Object(map) => &mut map.values(),
            _ => return Some(0),
        };
        let left = left.checked_sub(1)?;
        (&mut children)
            .try_fold(0, |deepest: usize, child| Some(deepest.max(depth(child, left)?)))
            .map(|deepest| deepest + 1)
    }
    depth(value, MAX_DEPTH).ok_or(PatchError::TooDeep)
}

/// Values, and bytes of text, in a value.
fn size(value: &Value) -> (usize, usize) {
    match value {
        Value::Array(list) => list.iter().map(size).fold((1, 2), |(n, b), (m, c)| (n + m, b + c + 1)),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key, size(value)))
            .fold((1, 2), |(n, b), (key, (m, c))| (n + m, b + c + key.len() + 4)),
        Value::String(text) => (1, text.len() + 2),
        _ => (1, 8),
    }
}

struct Budget {
    /// Never less than the depth of the object.
    depth: usize,
    copied: usize,
    work: usize,
}

impl Budget {
    fn charge(&mut self, target: &Value, operation: &PatchOperation) -> Result<(), PatchError> {
        match operation {
            PatchOperation::Add(add) => {
                self.grow(add.path.count() + measure(&add.value)?)?;
                self.shift(target, &add.path);
            }
            PatchOperation::Replace(replace) => self.grow(replace.path.count() + measure(&replace.value)?)?,
            PatchOperation::Remove(remove) => self.shift(target, &remove.path),
            PatchOperation::Move(step) => {
                let mut depth = step.path.count() + self.depth.saturating_sub(step.from.count());
                if let (true, Some(source)) = (depth > MAX_DEPTH, target.pointer(step.from.as_str())) {
                    // The bound may be too careful: look.
                    self.work += size(source).0;
                    depth = step.path.count() + measure(source)?;
                }
                self.grow(depth)?;
                self.shift(target, &step.from);
                self.shift(target, &step.path);
            }
            PatchOperation::Copy(copy) => {
                if let Some(source) = target.pointer(copy.from.as_str()) {
                    let (values, bytes) = size(source);
                    self.work += values;
                    self.copied += bytes;
                    self.grow(copy.path.count() + measure(source)?)?;
                }
                self.shift(target, &copy.path);
            }
            PatchOperation::Test(_) => {}
        }
        if self.copied > MAX_COPIED || self.work > MAX_WORK { Err(PatchError::TooMuch) } else { Ok(()) }
    }

    /// The object is now at most this deep.
    fn grow(&mut self, depth: usize) -> Result<(), PatchError> {
        if depth > MAX_DEPTH {
            return Err(PatchError::TooDeep);
        }
        self.depth = self.depth.max(depth);
        Ok(())
    }

    /// Inserting into or removing from a list moves what is behind.
    fn shift(&mut self, target: &Value, path: &PointerBuf) {
        let parent: Option<&Pointer> = path.parent();
        if let Some(Value::Array(list)) = parent.and_then(|parent| target.pointer(parent.as_str())) {
            self.work += list.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// The examples of RFC 7386, appendix A.
    #[test]
    fn merges_as_the_rfc_says() {
        let cases = [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"a": "b"}), json!(["c"]), json!(["c"])),
            (json!({"a": "foo"}), json!(null), json!(null)),
            (json!({"a": "foo"}), json!("bar"), json!("bar")),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ];
        for (mut target, patch, expected) in cases {
            let shown = format!("{target} with {patch}");
            merge_patch(&mut target, &patch).expect("shallow");
            assert_eq!(target, expected, "{shown}");
        }
    }

    #[test]
    fn applies_operations_in_order() {
        let mut value = json!({"a": [1, 2], "b": {"x~y/z": 1}});
        let patch = json!([
            {"op": "test", "path": "/b/x~0y~1z", "value": 1},
            {"op": "add", "path": "/a/-", "value": 3},
            {"op": "add", "path": "/a/0", "value": 0},
            {"op": "remove", "path": "/a/1"},
            {"op": "replace", "path": "/b", "value": {}},
            {"op": "copy", "from": "/a", "path": "/b/c"},
            {"op": "move", "from": "/a", "path": "/d"},
        ]);
        json_patch(&mut value, &patch).expect("fits");
        assert_eq!(value, json!({"b": {"c": [0, 2, 3]}, "d": [0, 2, 3]}));
    }

    #[test]
    fn a_failure_changes_nothing_and_names_the_operation() {
        let before = json!({"a": 1});
        let mut value = before.clone();
        let patch =
            json!([{"op": "replace", "path": "/a", "value": 2}, {"op": "test", "path": "/a", "value": 3}]);
        let error = json_patch(&mut value, &patch);
        assert!(
            matches!(error, Err(PatchError::Failed { operation: 1, ref path, .. }) if path == "/a"),
            "{error:?}"
        );
        let error = json_patch(&mut value, &json!([{"op": "remove", "path": "/x"}]));
        assert!(matches!(error, Err(PatchError::Failed { operation: 0, .. })));
        for malformed in [
            json!({}),
            json!([{"op": "jump", "path": "/a"}]),
            json!([{"op": "add", "path": "a", "value": 1}]),
        ] {
            assert!(
                matches!(json_patch(&mut value, &malformed), Err(PatchError::Malformed(_))),
                "{malformed}"
            );
        }
        assert_eq!(value, before);
    }

    #[test]
    fn growth_is_bounded() {
        let operations: Vec<Value> =
            (0..40).map(|i| json!({"op": "copy", "from": "", "path": format!("/k{i}")})).collect();
        let mut value = json!({"a": "b"});
        let error = json_patch(&mut value, &Value::Array(operations));
        assert!(matches!(error, Err(PatchError::TooMuch)), "{error:?}");

        let nested: Vec<Value> = (0..20)
            .map(|i| json!({"op": "copy", "from": "", "path": format!("{}/a", "/a".repeat((1 << i) - 1))}))
            .collect();
        let mut value = json!({"a": {}});
        let error = json_patch(&mut value, &Value::Array(nested));
        assert!(error.is_err(), "{error:?}");

        let many = vec![json!({"op": "test", "path": "", "value": {}}); MAX_OPERATIONS + 1];
        assert!(matches!(
            json_patch(&mut json!({}), &Value::Array(many)),
            Err(PatchError::TooManyOperations { .. })
        ));
    }

    #[test]
    fn depth_is_bounded_through_moves() {
        let deep = |n: usize| (0..n).fold(json!({}), |inner, _| json!({"a": inner}));
        let mut value = json!({"x": deep(70), "y": deep(70)});
        let path = format!("/y{}", "/a".repeat(70));
        let patch = json!([{"op": "move", "from": "/x", "path": format!("{path}/a")}]);
        assert!(matches!(json_patch(&mut value, &patch), Err(PatchError::TooDeep)));
        let patch = json!([{"op": "move", "from": "/x", "path": "/y/a/a/b"}]);
        assert!(json_patch(&mut value, &patch).is_ok());
    }

    proptest! {
        #[test]
        fn merging_twice_is_merging_once(a in crate::testing::json(), b in crate::testing::json()) {
            let mut once = a.clone();
            merge_patch(&mut once, &b).expect("shallow");
            let mut twice = once.clone();
            merge_patch(&mut twice, &b).expect("shallow");
            prop_assert_eq!(once, twice);
        }

        #[test]
        fn any_patch_is_answered(a in crate::testing::json(), b in crate::testing::json()) {
            let mut value = a;
            let _ = json_patch(&mut value, &b);
            let _ = json_patch(&mut value, &json!([b]));
        }
    }
}
