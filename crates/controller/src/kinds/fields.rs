//! Small helpers to read and default fields of JSON objects.

use serde_json::{Map, Value};

/// The value at a path of field names.
pub(crate) fn get<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |at, name| at.get(name))
}

/// The text at a path, empty when there is none.
pub(crate) fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    get(value, path).and_then(Value::as_str).unwrap_or_default()
}

/// The number at a path.
pub(crate) fn number(value: &Value, path: &[&str]) -> Option<i64> {
    get(value, path).and_then(Value::as_i64)
}

/// The list at a path, empty when there is none.
pub(crate) fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    get(value, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The object at a path, for changing. `None` when it or a parent is missing or no object.
pub(crate) fn object_mut<'a>(value: &'a mut Value, path: &[&str]) -> Option<&'a mut Map<String, Value>> {
    path.iter().try_fold(value, |at, name| at.get_mut(name))?.as_object_mut()
}

/// The object at a path, for changing; missing ones are made. `None` when something on the way is no object.
pub(crate) fn object_at<'a>(value: &'a mut Value, path: &[&str]) -> Option<&'a mut Map<String, Value>> {
    path.iter()
        .try_fold(value, |at, name| {
            Some(at.as_object_mut()?.entry(*name).or_insert_with(|| Value::Object(Map::new())))
        })?
        .as_object_mut()
}

/// The objects of the list at a path, for changing.
pub(crate) fn items_mut<'a>(
    map: &'a mut Map<String, Value>,
    field: &str,
) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    map.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

/// Sets a field that is missing, or that is empty text.
pub(crate) fn fill(map: &mut Map<String, Value>, field: &str, value: impl Into<Value>) {
    let missing = match map.get(field) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(_) => false,
    };
    if missing {
        map.insert(field.to_owned(), value.into());
    }
}

/// Removes nulls: Go's decoder treats them as absent, and clients send them (`creationTimestamp: null`).
pub(crate) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, v| !v.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}
