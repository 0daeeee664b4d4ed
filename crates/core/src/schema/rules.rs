//! Compiling value validation.

use serde_json::{Map, Value};

use super::compile::{Compiler, Place};
use super::format::Format;
use super::node::{Bound, Node, Rules, Types};
use super::pattern::Pattern;
use crate::field_error::FieldError;
use crate::field_path::FieldPath;

impl Compiler {
    pub(super) fn rules(&mut self, schema: &Map<String, Value>, place: &Place, node: &mut Node) {
        let path = &place.path;
        let mut rules = Rules { unique_items: self.flag(schema, "uniqueItems", path), ..Rules::default() };
        if rules.unique_items && !self.built_in {
            self.errors.push(FieldError::forbidden(
                path.field("uniqueItems"),
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            ));
        }
        match schema.get("enum") {
            Some(Value::Array(values)) if !values.is_empty() => rules.one_of_values.clone_from(values),
            None | Some(Value::Null) => {}
            Some(other) => self.errors.push(FieldError::invalid(
                path.field("enum"),
                other,
                "must be a list that is not empty",
            )),
        }
        rules.minimum = self.bound(schema, "minimum", "exclusiveMinimum", path);
        rules.maximum = self.bound(schema, "maximum", "exclusiveMaximum", path);
        match schema.get("multipleOf") {
            Some(Value::Number(number)) if number.as_f64().is_some_and(|n| n > 0.0) => {
                rules.multiple_of = Some(number.clone())
            }
            None | Some(Value::Null) => {}
            Some(other) => self.errors.push(FieldError::invalid(
                path.field("multipleOf"),
                other,
                "must be a number above 0",
            )),
        }
        rules.min_length = self.count(schema, "minLength", path);
        rules.max_length = self.count(schema, "maxLength", path);
        rules.min_items = self.count(schema, "minItems", path);
        rules.max_items = self.count(schema, "maxItems", path);
        rules.min_properties = self.count(schema, "minProperties", path);
        rules.max_properties = self.count(schema, "maxProperties", path);
        match schema.get("pattern") {
            Some(Value::String(source)) if !source.is_empty() => match Pattern::compile(source) {
                Ok(pattern) => rules.pattern = Some(pattern),
                Err(detail) => self.errors.push(FieldError::invalid(
                    path.field("pattern"),
                    &Value::from(source.as_str()),
                    detail,
                )),
            },
            None | Some(Value::Null | Value::String(_)) => {}
            Some(other) => {
                self.errors.push(FieldError::type_invalid(path.field("pattern"), other, "must be a string"))
            }
        }
        rules.format = schema.get("format").and_then(Value::as_str).and_then(Format::named);
        match schema.get("required") {
            Some(Value::Array(names)) => {
                rules.required = names.iter().filter_map(Value::as_str).map(Into::into).collect()
            }
            None | Some(Value::Null) => {}
            Some(other) => self.errors.push(FieldError::type_invalid(
                path.field("required"),
                other,
                "must be a list of names",
            )),
        }
        let int_or_string = node.types == Types::INT_OR_STRING || place.int_or_string;
        rules.all_of = self.alternatives(schema, "allOf", place, int_or_string);
        rules.any_of = self.alternatives(schema, "anyOf", place, int_or_string);
        rules.one_of = self.alternatives(schema, "oneOf", place, int_or_string);
        rules.not = schema
            .get("not")
            .filter(|not| !not.is_null())
            .map(|not| self.node(not, &place.validation(path.field("not"), false)));
        if !rules.is_empty() {
            node.rules = Some(Box::new(rules));
        }
    }

    fn bound(
        &mut self,
        schema: &Map<String, Value>,
        keyword: &str,
        exclusive: &str,
        path: &FieldPath,
    ) -> Option<Bound> {
        let exclusive = self.flag(schema, exclusive, path);
        match schema.get(keyword) {
            Some(Value::Number(limit)) => Some(Bound { limit: limit.clone(), exclusive }),
            None | Some(Value::Null) => None,
            Some(other) => {
                self.errors.push(FieldError::type_invalid(path.field(keyword), other, "must be a number"));
                None
            }
        }
    }

    fn count(&mut self, schema: &Map<String, Value>, keyword: &str, path: &FieldPath) -> Option<usize> {
        let value = schema.get(keyword).filter(|value| !value.is_null())?;
        let count = value.as_u64().and_then(|count| usize::try_from(count).ok());
        if count.is_none() {
            self.errors.push(FieldError::invalid(
                path.field(keyword),
                value,
                "must be an integer of at least 0",
            ));
        }
        count
    }

    fn alternatives(
        &mut self,
        schema: &Map<String, Value>,
        keyword: &str,
        place: &Place,
        int_or_string: bool,
    ) -> Vec<Node> {
        match schema.get(keyword) {
            Some(Value::Array(list)) => {
                let each = |(index, one)| {
                    let at = place.path.field(keyword).index(index);
                    self.node(one, &place.validation(at, int_or_string))
                };
                list.iter().enumerate().map(each).collect()
            }
            None | Some(Value::Null) => Vec::new(),
            Some(other) => {
                self.errors.push(FieldError::type_invalid(
                    place.path.field(keyword),
                    other,
                    "must be a list",
                ));
                Vec::new()
            }
        }
    }
}

impl Rules {
    fn is_empty(&self) -> bool {
        let Self {
            one_of_values,
            minimum,
            maximum,
            multiple_of,
            min_length,
            max_length,
            pattern,
            format,
            min_items,
            max_items,
            unique_items,
            min_properties,
            max_properties,
            required,
            all_of,
            any_of,
            one_of,
            not,
        } = self;
        one_of_values.is_empty()
            && minimum.is_none()
            && maximum.is_none()
            && multiple_of.is_none()
            && [min_length, max_length, min_items, max_items, min_properties, max_properties]
                .iter()
                .all(|o| o.is_none())
            && pattern.is_none()
            && format.is_none()
            && !unique_items
            && required.is_empty()
            && [all_of, any_of, one_of].iter().all(|list| list.is_empty())
            && not.is_none()
    }
}
