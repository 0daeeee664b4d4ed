//! The examples of Kubernetes' documentation, and properties.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::Schema;

fn parse(schema: Value) -> Schema {
    Schema::parse(&schema).unwrap_or_else(|errors| panic!("{schema}: {errors:?}"))
}

fn with_spec(spec: Value) -> Schema {
    parse(json!({"type": "object", "properties": {"spec": spec}}))
}

fn errors(schema: &Schema, value: Value) -> Vec<String> {
    schema.validate(&value).iter().map(ToString::to_string).collect()
}

fn refused(schema: Value) -> Vec<String> {
    match Schema::parse(&schema) {
        Ok(_) => panic!("{schema} is structural"),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    }
}

/// The CronTab of "Extend the Kubernetes API with CustomResourceDefinitions", with its validation and defaults.
fn cron_tab() -> Schema {
    with_spec(json!({"type": "object", "properties": {
        "cronSpec": {"type": "string", "pattern": r"^(\d+|\*)(/\d+)?(\s+(\d+|\*)(/\d+)?){4}$", "default": "5 0 * * *"},
        "image": {"type": "string"},
        "replicas": {"type": "integer", "minimum": 1, "maximum": 10, "default": 1},
    }}))
}

#[test]
fn the_documented_cron_tab_is_refused_with_the_documented_words() {
    let object = json!({"apiVersion": "stable.example.com/v1", "kind": "CronTab", "metadata": {"name": "my-new-cron-object"},
        "spec": {"cronSpec": "* * * *", "image": "my-awesome-cron-image", "replicas": 15}});
    assert_eq!(
        errors(&cron_tab(), object),
        [
            r#"spec.cronSpec: Invalid value: "* * * *": spec.cronSpec in body should match '^(\d+|\*)(/\d+)?(\s+(\d+|\*)(/\d+)?){4}$'"#,
            "spec.replicas: Invalid value: 15: spec.replicas in body should be less than or equal to 10",
        ]
    );
}

#[test]
fn the_documented_cron_tab_gets_its_defaults() {
    let mut object = json!({"kind": "CronTab", "spec": {"image": "my-awesome-cron-image"}});
    cron_tab().default(&mut object);
    assert_eq!(
        object["spec"],
        json!({"cronSpec": "5 0 * * *", "image": "my-awesome-cron-image", "replicas": 1})
    );
}

/// "Defaulting and Nullable" of the documentation.
#[test]
fn null_is_defaulted_pruned_or_kept() {
    let schema = with_spec(json!({"type": "object", "properties": {
        "foo": {"type": "string", "nullable": false, "default": "default"},
        "bar": {"type": "string", "nullable": true},
        "baz": {"type": "string"},
    }}));
    let mut object = json!({"spec": {"foo": null, "bar": null, "baz": null}});
    schema.default(&mut object);
    assert_eq!(object, json!({"spec": {"foo": "default", "bar": null}}));
    assert!(schema.validate(&object).is_empty());
    let mut nothing = json!({});
    schema.default(&mut nothing);
    assert_eq!(nothing, json!({}), "a missing object is not made");
}

/// "Field pruning" and "Controlling pruning" of the documentation.
#[test]
fn unknown_fields_are_dropped_and_named() {
    let mut object = json!({"apiVersion": "v1", "kind": "CronTab", "metadata": {"name": "a", "labels": {"l": "1"}},
        "spec": {"cronSpec": "* * * * */5", "someRandomField": 42}, "other": {}});
    assert_eq!(cron_tab().prune(&mut object), ["other", "spec.someRandomField"]);
    assert_eq!(
        object,
        json!({"apiVersion": "v1", "kind": "CronTab", "metadata": {"name": "a", "labels": {"l": "1"}},
        "spec": {"cronSpec": "* * * * */5"}})
    );

    let schema = parse(json!({"type": "object", "properties": {
        "json": {"x-kubernetes-preserve-unknown-fields": true, "type": "object", "properties": {
            "spec": {"type": "object", "properties": {"foo": {"type": "string"}, "bar": {"type": "string"}}},
        }},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "string"}}}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
    }}));
    let mut object = json!({
        "json": {"spec": {"foo": "abc", "bar": "def", "something": "x"}, "status": {"something": "x"}},
        "map": {"k": {"a": "1", "b": "2"}}, "list": [{"a": "1"}, {"b": "2"}],
    });
    assert_eq!(schema.prune(&mut object), ["json.spec.something", "list[1].b", "map.k.b"]);
    assert_eq!(
        object,
        json!({
            "json": {"spec": {"foo": "abc", "bar": "def"}, "status": {"something": "x"}},
            "map": {"k": {"a": "1"}}, "list": [{"a": "1"}, {}],
        })
    );
}

#[test]
fn an_embedded_resource_has_a_type_and_keeps_its_metadata() {
    let schema = with_spec(
        json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"x": {"type": "string"}}}),
    );
    let mut object = json!({"spec": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "b"}}, "x": "1", "y": 2}});
    assert_eq!(schema.prune(&mut object), ["spec.y"]);
    assert!(schema.validate(&object).is_empty());
    assert_eq!(
        errors(&schema, json!({"spec": {"kind": ""}})),
        [
            "spec.apiVersion: Required value: must not be empty",
            "spec.kind: Required value: must not be empty",
        ]
    );
}

#[test]
fn every_rule_is_checked() {
    let cases = [
        (
            json!({"type": "integer"}),
            json!("x"),
            r#"spec: Invalid value: "string": spec in body must be of type integer: "string""#,
        ),
        (
            json!({"type": "integer"}),
            json!(1.5),
            r#"spec: Invalid value: "number": spec in body must be of type integer: "number""#,
        ),
        (
            json!({"type": "string"}),
            Value::Null,
            r#"spec: Invalid value: "null": spec in body must be of type string: "null""#,
        ),
        (
            json!({"type": "string", "enum": ["a", "b"]}),
            json!("c"),
            r#"spec: Unsupported value: "c": supported values: "a", "b""#,
        ),
        (
            json!({"type": "number", "minimum": 1, "exclusiveMinimum": true}),
            json!(1),
            "spec: Invalid value: 1: spec in body should be greater than 1",
        ),
        (
            json!({"type": "number", "minimum": 1.5}),
            json!(1),
            "spec: Invalid value: 1: spec in body should be greater than or equal to 1.5",
        ),
        (
            json!({"type": "number", "maximum": 1, "exclusiveMaximum": true}),
            json!(1.0),
            "spec: Invalid value: 1.0: spec in body should be less than 1",
        ),
        (
            json!({"type": "integer", "multipleOf": 3}),
            json!(10),
            "spec: Invalid value: 10: spec in body should be a multiple of 3",
        ),
        (
            json!({"type": "integer", "format": "int32"}),
            json!(3_000_000_000_u64),
            "spec: Invalid value: 3000000000: spec in body must be of type int32: 3000000000",
        ),
        (
            json!({"type": "string", "minLength": 2}),
            json!("ü"),
            "spec: Invalid value: \"ü\": spec in body should be at least 2 chars long",
        ),
        (
            json!({"type": "string", "maxLength": 2}),
            json!("üüü"),
            "spec: Too long: may not be more than 2 bytes",
        ),
        (
            json!({"type": "string", "format": "date-time"}),
            json!("x"),
            r#"spec: Invalid value: "x": spec in body must be of type date-time: "x""#,
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "minItems": 1}),
            json!([]),
            "spec: Invalid value: []: spec in body should have at least 1 items",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "maxItems": 1}),
            json!(["a", "b"]),
            "spec: Too many: 2: must have at most 1 items",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            json!(["a", 1]),
            r#"spec[1]: Invalid value: "integer": spec[1] in body must be of type string: "integer""#,
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
            json!(["a", "b", "a"]),
            r#"spec[2]: Duplicate value: "a""#,
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "v": {"type": "string"}}}}),
            json!([{"name": "a", "v": "1"}, {"name": "a", "v": "2"}]),
            r#"spec[1]: Duplicate value: {"name":"a"}"#,
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
            json!({}),
            "spec.a: Required value",
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1}),
            json!({}),
            "spec: Invalid value: {}: spec in body should have at least 1 properties",
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 1}),
            json!({"a": "", "b": ""}),
            "spec: Too many: 2: must have at most 1 items",
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"a": 1}),
            r#"spec.a: Invalid value: "integer": spec.a in body must be of type string: "integer""#,
        ),
        (
            json!({"type": "integer", "anyOf": [{"minimum": 5}, {"maximum": 1}]}),
            json!(3),
            "spec: Invalid value: 3: spec in body must validate at least one schema (anyOf)",
        ),
        (
            json!({"type": "integer", "oneOf": [{"minimum": 1}, {"minimum": 2}]}),
            json!(3),
            "spec: Invalid value: 3: spec in body must validate one and only one schema (oneOf). Found 2 valid alternatives",
        ),
        (
            json!({"type": "integer", "oneOf": [{"minimum": 5}]}),
            json!(3),
            "spec: Invalid value: 3: spec in body must validate one and only one schema (oneOf). Found none valid",
        ),
        (
            json!({"type": "integer", "allOf": [{"minimum": 5}]}),
            json!(3),
            "spec: Invalid value: 3: spec in body should be greater than or equal to 5",
        ),
        (
            json!({"type": "integer", "not": {"minimum": 1}}),
            json!(3),
            "spec: Invalid value: 3: spec in body must not validate the schema (not)",
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!(true),
            r#"spec: Invalid value: "boolean": spec in body must be of type string,integer: "boolean""#,
        ),
    ];
    for (schema, value, expected) in cases {
        assert_eq!(errors(&with_spec(schema.clone()), json!({"spec": value})), [expected], "{schema}");
    }
}

#[test]
fn what_fits_is_valid() {
    let cases = [
        (json!({"type": "integer"}), vec![json!(1), json!(1.0), json!(-5)]),
        (json!({"type": "number"}), vec![json!(1), json!(1.5)]),
        (json!({"type": "string", "nullable": true}), vec![json!("x"), Value::Null]),
        (json!({"x-kubernetes-int-or-string": true}), vec![json!(1), json!("50%")]),
        (
            json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
            vec![json!(1), json!("x")],
        ),
        (json!({"x-kubernetes-preserve-unknown-fields": true}), vec![json!(1), json!([{}]), Value::Null]),
        (json!({"type": "integer", "enum": [1, 2]}), vec![json!(2), json!(2.0)]),
        (json!({"type": "number", "multipleOf": 0.1}), vec![json!(0.3), json!(7)]),
        (json!({"type": "string", "minLength": 2, "maxLength": 2}), vec![json!("üü")]),
    ];
    for (schema, values) in cases {
        let compiled = with_spec(schema.clone());
        for value in values {
            assert_eq!(errors(&compiled, json!({"spec": value})), [""; 0], "{schema} {value}");
        }
    }
    assert!(with_spec(json!({"type": "integer"})).validate(&json!({})).is_empty(), "not required");
}

/// "Specifying a structural schema" of the documentation: its example that is not structural, and why.
#[test]
fn the_documented_schema_that_is_not_structural() {
    let found = refused(json!({
        "properties": {
            "foo": {"pattern": "abc"},
            "metadata": {"type": "object", "properties": {"name": {"type": "string", "pattern": "^a"}, "finalizers": {"type": "array", "items": {"type": "string", "pattern": "my-finalizer"}}}},
        },
        "anyOf": [
            {"properties": {"bar": {"type": "integer", "minimum": 42}}, "required": ["bar"], "description": "foo bar object"},
        ],
    }));
    for expected in [
        "type: Required value: must not be empty at the root",
        "properties[foo].type: Required value: must not be empty for specified object fields",
        "anyOf[0].properties[bar].type: Forbidden: must be empty to be structural",
        "anyOf[0].description: Forbidden: must be undefined to be structural",
    ] {
        assert!(found.iter().any(|one| one == expected), "{expected} in {found:?}");
    }
}

#[test]
fn what_is_not_structural_is_named() {
    let spec = |spec: Value| refused(json!({"type": "object", "properties": {"spec": spec}}));
    let at = "properties[spec]";
    let cases = [
        (
            json!({"type": "object", "anyOf": [{"required": ["a"], "properties": {"a": {}}}]}),
            "properties[a]: Required value: because it is defined in properties[spec].anyOf[0].properties[a]",
        ),
        (json!({"type": "array"}), "items: Required value: must be specified"),
        (
            json!({"type": "array", "items": {}}),
            "items.type: Required value: must not be empty for specified array items",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
            "additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
        ),
        (
            json!({"type": "object", "additionalProperties": false}),
            "additionalProperties: Forbidden: must not be used with value false",
        ),
        (json!({"type": "string", "$ref": "#/x"}), "$ref: Forbidden: must not be set"),
        (
            json!({"type": "text"}),
            r#"type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string""#,
        ),
        (
            json!({"type": "string", "default": 1}),
            r#"default: Invalid value: "integer": default in body must be of type string: "integer""#,
        ),
        (
            json!({"type": "object", "properties": {}, "default": {"a": 1}}),
            r#"default: Invalid value: {"a":1}: must not have unknown fields: a"#,
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
            "uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}}),
            "x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"], "items": {"type": "object", "properties": {"a": {"type": "string"}}}}),
            "items.properties[a].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "list", "items": {"type": "string"}}),
            r#"x-kubernetes-list-type: Unsupported value: "list": supported values: "atomic", "map", "set""#,
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}}),
            "items.x-kubernetes-map-type: Forbidden: items of a set must be scalars or atomic",
        ),
        (
            json!({"type": "string", "minLength": -1}),
            "minLength: Invalid value: -1: must be an integer of at least 0",
        ),
    ];
    for (schema, expected) in cases {
        let found = spec(schema.clone());
        assert!(found.contains(&format!("{at}.{expected}")), "{schema}: {expected} in {found:#?}");
    }
    assert!(spec(json!({"type": "string", "pattern": "("})).iter().any(|one| {
        one.contains("properties[spec].pattern: Invalid value: \"(\": must be a valid regular expression")
    }));
    assert!(!refused(json!({"type": "string"})).is_empty());
    assert!(!refused(json!([])).is_empty());
    let deep = (0..200)
        .fold(json!({"type": "string"}), |inner, _| json!({"type": "object", "properties": {"a": inner}}));
    assert!(refused(deep).iter().any(|one| one.contains("deep")));
}

#[test]
fn rules_that_nobody_checks_are_listed() {
    let schema = with_spec(json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.a > 1"}]}));
    assert_eq!(schema.not_enforced(), ["properties[spec].x-kubernetes-validations"]);
}

/// Positions as Kubernetes' own document writes them.
#[test]
fn built_in_schemas_are_read_as_they_are_meant() {
    let schema = Schema::parse_built_in(&json!({"type": "object", "properties": {
        "spec": {"default": {}, "type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "default": ""},
            "protocol": {"type": "string", "default": "TCP"},
            "raw": {"type": "object"},
            "any": {"description": "anything"},
            "port": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
        }},
    }}))
    .expect("readable");
    let mut object = json!({"spec": {"raw": {"x": 1}, "any": [1], "port": "http", "unknown": 1}});
    assert_eq!(schema.prune(&mut object), ["spec.unknown"]);
    schema.default(&mut object);
    assert_eq!(object, json!({"spec": {"raw": {"x": 1}, "any": [1], "port": "http", "protocol": "TCP"}}));
    assert_eq!(errors(&schema, object), ["spec.name: Required value"]);
    let mut bare = json!({});
    schema.default(&mut bare);
    assert_eq!(bare, json!({}));
}

/// One long key above many unknown or wrong fields must not be repeated for each of them.
#[test]
fn answers_to_hostile_objects_stay_small() {
    let schema =
        with_spec(json!({"type": "object", "additionalProperties": {"type": "object", "properties": {
            "list": {"type": "array", "items": {"type": "string"}, "maxItems": 1},
        }}}));
    let unknown: serde_json::Map<String, Value> =
        (0..10_000).map(|n| (format!("k{n}"), Value::Null)).collect();
    let mut object = json!({"spec": {"x".repeat(100_000): unknown}});
    let dropped = schema.prune(&mut object);
    assert_eq!(dropped.len(), 256);
    assert!(dropped.iter().map(String::len).sum::<usize>() < 100_000);
    assert_eq!(object.pointer("/spec").and_then(|spec| spec.as_object()?.values().next()), Some(&json!({})));
    let wrong: Vec<Value> = (0..10_000).map(|n| json!([n, "y".repeat(1000)])).collect();
    let found = errors(&schema, json!({"spec": {"x".repeat(100_000): {"list": wrong}}}));
    assert_eq!(found.len(), 100);
    assert!(found.iter().map(String::len).sum::<usize>() < 300_000);
}

/// A schema with a little of everything, over the names that random objects have.
fn mixed() -> Schema {
    let leaf = json!({"type": "string"});
    parse(json!({"type": "object", "properties": {
        "a": {"type": "object", "properties": {"a": leaf, "b": {"type": "integer", "default": 1}, "c": {"type": "string", "nullable": true}}},
        "b": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "boolean", "default": true}}}},
        "c": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {"type": "object", "properties": {"b": leaf}}}},
        "d": {"type": "object", "additionalProperties": {"type": "array", "items": leaf}, "default": {"k": ["v"]}},
    }}))
}

proptest! {
    #[test]
    fn pruning_and_defaulting_settle(value in crate::testing::json()) {
        let schema = mixed();
        let mut once = value.clone();
        schema.prune(&mut once);
        let mut again = once.clone();
        prop_assert!(schema.prune(&mut again).is_empty());
        prop_assert_eq!(&once, &again);
        schema.default(&mut once);
        let mut twice = once.clone();
        schema.default(&mut twice);
        prop_assert_eq!(&once, &twice);
        prop_assert!(schema.prune(&mut twice).is_empty(), "defaults are known fields");
        if schema.validate(&value).is_empty() {
            prop_assert_eq!(schema.validate(&once), []);
        }
    }

    #[test]
    fn any_json_is_a_schema_or_refused(schema in crate::testing::json(), value in crate::testing::json()) {
        for parsed in [Schema::parse(&schema), Schema::parse_built_in(&schema)].into_iter().flatten() {
            let mut value = value.clone();
            parsed.prune(&mut value);
            parsed.default(&mut value);
            let _ = parsed.validate(&value);
        }
    }
}
