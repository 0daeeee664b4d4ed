//! Columns of Tables: what `kubectl get` prints.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::jsonpath::JsonPath;

/// One column.
#[derive(Debug, Clone)]
pub struct Column {
    /// Heading.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub kind: String,
    /// OpenAPI format, may be empty.
    pub format: String,
    /// For people.
    pub description: String,
    /// Zero is always shown, more only with `-o wide`.
    pub priority: i64,
    /// How a cell is made.
    pub cell: Cell,
}

/// How the cell of a column is made from an object.
#[derive(Debug, Clone)]
pub enum Cell {
    /// What a JSON path finds first.
    Path(JsonPath),
    /// By code, given the object and the time.
    Code(fn(&Value, Timestamp) -> Value),
}

impl Column {
    /// A column made by code.
    #[must_use]
    pub fn code(name: &str, kind: &str, priority: i64, cell: fn(&Value, Timestamp) -> Value) -> Self {
        Self {
            name: name.to_owned(),
            kind: kind.to_owned(),
            format: String::new(),
            description: String::new(),
            priority,
            cell: Cell::Code(cell),
        }
    }

    /// The usual last column.
    #[must_use]
    pub fn age() -> Self {
        Self::code("Age", "string", 0, |object, now| {
            json!(age(crate::object::metadata_str(object, "creationTimestamp"), now))
        })
    }

    /// The cell for `object`.
    #[must_use]
    pub fn cell(&self, object: &Value, now: Timestamp) -> Value {
        match &self.cell {
            Cell::Code(make) => make(object, now),
            Cell::Path(path) => match path.first(object) {
                None => Value::Null,
                Some(value) => convert(&self.kind, value, now),
            },
        }
    }
}

/// A found value as a cell of the column's type; null when it is of another type, as in Kubernetes.
fn convert(kind: &str, value: &Value, now: Timestamp) -> Value {
    match kind {
        "integer" => {
            value.as_i64().or_else(|| value.as_f64().map(|f| f as i64)).map_or(Value::Null, Value::from)
        }
        "number" if value.is_number() => value.clone(),
        "boolean" if value.is_boolean() => value.clone(),
        "date" => value.as_str().map_or(Value::Null, |text| json!(age(text, now))),
        "string" => match value {
            Value::String(_) => value.clone(),
            other => json!(other.to_string()),
        },
        _ => Value::Null,
    }
}

/// How long ago `time` (RFC 3339) was, in kubectl's short form, or `<unknown>`.
#[must_use]
pub fn age(time: &str, now: Timestamp) -> String {
    match time.parse::<Timestamp>() {
        Ok(then) => duration(now.as_second() - then.as_second()),
        Err(_) => "<unknown>".to_owned(),
    }
}

/// Seconds in kubectl's short form: `5s`, `3m12s`, `4h`, `2d3h`, `400d`, `3y20d`.
#[must_use]
pub fn duration(seconds: i64) -> String {
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let seconds = seconds.max(0);
    let pair = |big: i64, unit: &str, small: i64, small_unit: &str| {
        if small == 0 { format!("{big}{unit}") } else { format!("{big}{unit}{small}{small_unit}") }
    };
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let days = hours / 24;
    if seconds < 120 {
        format!("{seconds}s")
    } else if minutes < 10 {
        pair(minutes, "m", seconds % 60, "s")
    } else if minutes < 180 {
        format!("{minutes}m")
    } else if hours < 8 {
        pair(hours, "h", minutes % 60, "m")
    } else if hours < 48 {
        format!("{hours}h")
    } else if hours < 192 {
        pair(days, "d", hours % 24, "h")
    } else if days < 730 {
        format!("{days}d")
    } else if days < 2920 {
        pair(days / 365, "y", days % 365, "d")
    } else {
        format!("{}y", days / 365)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_kubectl_prints_them() {
        // From k8s.io/apimachinery/pkg/util/duration's own table.
        for (seconds, text) in [
            (-2, "<invalid>"),
            (0, "0s"),
            (1, "1s"),
            (70, "70s"),
            (119, "119s"),
            (120, "2m"),
            (190, "3m10s"),
            (600, "10m"),
            (179 * 60, "179m"),
            (180 * 60, "3h"),
            (3 * 3600 + 240, "3h4m"),
            (8 * 3600, "8h"),
            (47 * 3600, "47h"),
            (48 * 3600, "2d"),
            (51 * 3600, "2d3h"),
            (8 * 86_400, "8d"),
            (729 * 86_400, "729d"),
            (730 * 86_400, "2y"),
            (731 * 86_400, "2y1d"),
            (2920 * 86_400, "8y"),
        ] {
            assert_eq!(duration(seconds), text, "{seconds}");
        }
    }
}
