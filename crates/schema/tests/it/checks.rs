//! Values that fit and values that do not, and the explanations for the latter.

use switchboard_schema::Checker;

use crate::raw;

fn check(schema: &str, value: &str) -> Result<(), String> {
    let checker = Checker::compile(&raw(schema)).unwrap();
    checker.check(&raw(value)).map_err(|mismatches| {
        assert!((1..=5).contains(&mismatches.as_slice().len()));
        mismatches.to_string()
    })
}

/// A schema, values that it allows, and values that it does not.
type Row = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

const KEYWORDS: &[Row] = &[
    (r"true", &["1", "{}"], &[]),
    (r"false", &[], &["1", "{}"]),
    (r"{}", &["null", "{}"], &[]),
    (
        r#"{"type":"integer"}"#,
        &[
            "1",
            "1.0",
            "-0",
            "1e3",
            "12345678901234567890123456789",
            "1e400",
        ],
        &["1.5", "\"1\"", "null", "[1]"],
    ),
    (
        r#"{"type":"number"}"#,
        &["1", "1.5", "1e400", "-1E-400"],
        &["\"1\"", "true"],
    ),
    (
        r#"{"type":["string","null"]}"#,
        &["\"\"", "null"],
        &["1", "{}"],
    ),
    (r#"{"type":"object"}"#, &["{}"], &["[]", "null"]),
    (
        r#"{"type":"string","nullable":true}"#,
        &["null", "\"\""],
        &["1"],
    ),
    (
        r#"{"enum":["a",1,{"b":[2]},null]}"#,
        &["\"a\"", "1.0", r#"{"b":[2e0]}"#, "null"],
        &["\"b\"", "2", r#"{"b":[]}"#, "false"],
    ),
    (
        r#"{"const":{"a":1,"b":2}}"#,
        &[r#"{"b":2,"a":1}"#],
        &["{}", r#"{"a":1}"#],
    ),
    (
        r#"{"minimum":1,"maximum":10}"#,
        &["1", "10", "5.5", "\"x\""],
        &["0", "10.0000000000000000000000001", "1e400", "-1e400"],
    ),
    (
        r#"{"exclusiveMinimum":1,"exclusiveMaximum":2}"#,
        &["1.5"],
        &["1", "2", "1.0"],
    ),
    (
        r#"{"minimum":1,"exclusiveMinimum":true,"maximum":2,"exclusiveMaximum":false}"#,
        &["1.5", "2"],
        &["1"],
    ),
    (
        r#"{"multipleOf":0.01}"#,
        &["0.07", "19.99", "4", "1e30"],
        &["0.075"],
    ),
    (
        r#"{"minLength":2,"maxLength":3}"#,
        &["\"ab\"", "\"äöü\"", "\"\u{1f600}\u{1f600}\"", "1"],
        &["\"a\"", "\"abcd\"", "\"\u{1f600}\""],
    ),
    (
        r#"{"pattern":"^[a-z]+$"}"#,
        &["\"abc\"", "1"],
        &["\"Abc\"", "\"\""],
    ),
    (r#"{"pattern":"b"}"#, &["\"abc\""], &["\"ac\""]),
    (r#"{"pattern":"(?=x)y"}"#, &["\"anything\""], &[]),
    (
        r#"{"format":"email","type":"string"}"#,
        &["\"no address\""],
        &["1"],
    ),
    (
        r#"{"items":{"type":"integer"}}"#,
        &["[]", "[1,2.0]", "{}"],
        &["[1,\"2\"]"],
    ),
    (
        r#"{"prefixItems":[{"type":"integer"}],"items":{"type":"string"}}"#,
        &["[1,\"a\"]", "[]"],
        &["[\"a\"]", "[1,2]"],
    ),
    (
        r#"{"items":[{"type":"integer"}],"additionalItems":false}"#,
        &["[1]", "[]"],
        &["[\"a\"]", "[1,2]"],
    ),
    (
        r#"{"minItems":1,"maxItems":2}"#,
        &["[1]", "[1,2]"],
        &["[]", "[1,2,3]"],
    ),
    (
        r#"{"uniqueItems":true}"#,
        &["[1,2]", "[1,\"1\"]", "[[],{}]"],
        &["[1,1.0]", r#"[{"a":1,"b":2},{"b":2,"a":1}]"#],
    ),
    (
        r#"{"contains":{"type":"integer"},"maxContains":1}"#,
        &["[1,\"a\"]"],
        &["[]", "[\"a\"]", "[1,2]"],
    ),
    (
        r#"{"contains":{"type":"integer"},"minContains":0}"#,
        &["[]"],
        &[],
    ),
    (
        r#"{"properties":{"a":{"type":"integer"}}}"#,
        &["{}", r#"{"a":1,"b":2}"#, "[]"],
        &[r#"{"a":"1"}"#],
    ),
    (
        r#"{"required":["a","b"]}"#,
        &[r#"{"a":null,"b":1}"#, "1"],
        &["{}", r#"{"a":1}"#],
    ),
    (
        r#"{"properties":{"a":true},"patternProperties":{"^x-":{"type":"string"}},"additionalProperties":false}"#,
        &[r#"{"a":1,"x-b":""}"#],
        &[r#"{"b":1}"#, r#"{"x-b":1}"#],
    ),
    (
        r#"{"additionalProperties":{"type":"integer"}}"#,
        &[r#"{"a":1}"#],
        &[r#"{"a":"1"}"#],
    ),
    (
        r#"{"patternProperties":{"(?!a)":false},"additionalProperties":false}"#,
        &[r#"{"b":1}"#],
        &[],
    ),
    (
        r#"{"minProperties":1,"maxProperties":1}"#,
        &[r#"{"a":1}"#],
        &["{}", r#"{"a":1,"b":1}"#],
    ),
    (
        r#"{"propertyNames":{"pattern":"^[a-z]+$","maxLength":3}}"#,
        &[r#"{"abc":1}"#],
        &[r#"{"A":1}"#, r#"{"abcd":1}"#],
    ),
    (
        r#"{"dependentRequired":{"a":["b"]}}"#,
        &["{}", r#"{"b":1}"#, r#"{"a":1,"b":1}"#],
        &[r#"{"a":1}"#],
    ),
    (
        r#"{"dependencies":{"a":["b"],"c":{"required":["d"]}}}"#,
        &["{}", r#"{"a":1,"b":1}"#],
        &[r#"{"a":1}"#, r#"{"c":1}"#],
    ),
    (
        r#"{"dependentSchemas":{"a":{"properties":{"b":{"type":"integer"}}}}}"#,
        &[r#"{"b":""}"#],
        &[r#"{"a":1,"b":""}"#],
    ),
    (
        r#"{"allOf":[{"type":"integer"},{"minimum":3}]}"#,
        &["3"],
        &["2", "\"3\""],
    ),
    (
        r#"{"anyOf":[{"type":"string"},{"type":"null"}]}"#,
        &["\"\"", "null"],
        &["1"],
    ),
    // A value that fits several alternatives is left to the server.
    (
        r#"{"oneOf":[{"type":"integer"},{"type":"number"}]}"#,
        &["1", "1.5"],
        &["\"\""],
    ),
    (r#"{"not":{"type":"string"}}"#, &["1"], &["\"\""]),
    (
        r#"{"not":{"pattern":"(?=x)"}}"#,
        &["\"x\"", "\"y\""],
        &["1"],
    ),
    (
        r#"{"if":{"properties":{"a":{"const":1}},"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]}}"#,
        &[r#"{"a":1,"b":1}"#, r#"{"c":1}"#],
        &[r#"{"a":1}"#, "{}"],
    ),
    (
        r##"{"$ref":"#/$defs/a","$defs":{"a":{"type":"integer"}}}"##,
        &["1"],
        &["\"\""],
    ),
    (
        r##"{"$ref":"#/definitions/a","minimum":3,"definitions":{"a":{"type":"integer"}}}"##,
        &["3"],
        &["1", "\"\""],
    ),
    (
        r##"{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"x":{"$ref":"#/definitions/a","minimum":3}},"definitions":{"a":{"type":"integer"}}}"##,
        &[r#"{"x":1}"#],
        &[r#"{"x":""}"#],
    ),
    (
        r##"{"type":"object","properties":{"next":{"$ref":"#"}},"additionalProperties":false}"##,
        &[r#"{"next":{"next":{}}}"#],
        &[r#"{"next":{"next":{"nxt":1}}}"#],
    ),
    (
        r#"{"$ref":"https://example.com/schema.json"}"#,
        &["1", "{}"],
        &[],
    ),
    (
        r##"{"properties":{"a":{"$id":"http://x/","$ref":"#/$defs/b","$defs":{"b":{}}}},"$defs":{"b":false}}"##,
        &[r#"{"a":1}"#],
        &[],
    ),
    // Unknown keywords, and keywords with invalid values, refuse nothing.
    (
        r#"{"type":"any","required":true,"minimum":"1","properties":[],"items":3,"enum":{},"x-other":1}"#,
        &["1", "{}", "[]", "null"],
        &[],
    ),
    (
        r#"{"unevaluatedProperties":false,"properties":{"a":true}}"#,
        &[r#"{"a":1}"#],
        &[r#"{"b":1}"#],
    ),
    (
        r#"{"unevaluatedProperties":false,"additionalProperties":{"type":"integer"}}"#,
        &[r#"{"a":1}"#],
        &[r#"{"a":""}"#],
    ),
    (
        r#"{"unevaluatedProperties":false,"allOf":[{"properties":{"a":true}}]}"#,
        &[r#"{"a":1}"#, r#"{"b":1}"#],
        &[],
    ),
];

#[test]
fn keywords() {
    for (schema, allowed, refused) in KEYWORDS {
        for value in *allowed {
            assert_eq!(check(schema, value), Ok(()), "{schema} allows {value}");
        }
        for value in *refused {
            assert!(check(schema, value).is_err(), "{schema} refuses {value}");
        }
    }
}

const SEARCH: &str = r#"{
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "Where to search.\n  Relative to the root of the project, which is told by another tool."},
        "mode": {"type": "string", "enum": ["read", "write"]},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100},
        "tags": {"type": "array", "items": {"type": "string"}},
        "deep": {"type": "boolean"},
        "filter": {"type": "object", "properties": {"from": {"type": "string", "minLength": 3}}, "required": ["from"]},
        "target": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
        "action": {"oneOf": [
            {"type": "object", "properties": {"kind": {"const": "open"}, "file": {"type": "string"}}, "required": ["kind", "file"]},
            {"type": "object", "properties": {"kind": {"const": "close"}}, "required": ["kind"]}
        ]}
    },
    "required": ["path"],
    "additionalProperties": false
}"#;

/// The explanations for common mistakes of callers.
const WORDS: &[(&str, &str)] = &[
    (
        r"{}",
        "arguments.path is missing: string (Where to search. Relative to the root of the project, which is told by another t…)",
    ),
    (
        r#"{"pth":"x","path":"x"}"#,
        "arguments.pth is unknown; did you mean `path`?",
    ),
    (
        r#"{"zzz":1,"path":"x"}"#,
        "arguments.zzz is unknown; the known names are `path`, `mode`, `limit`, `tags`, `deep`, `filter`, `target`, `action`",
    ),
    (
        r#"{"path":1}"#,
        "arguments.path must be a string, not 1; write \"1\" in quotation marks",
    ),
    (
        r#"{"path":"x","limit":"10"}"#,
        "arguments.limit must be an integer, not \"10\"; pass 10 as a number, not as a string",
    ),
    (
        r#"{"path":"x","limit":"ten"}"#,
        "arguments.limit must be an integer, not \"ten\"",
    ),
    (
        r#"{"path":"x","limit":1.5}"#,
        "arguments.limit must be an integer, not 1.5",
    ),
    (
        r#"{"path":"x","limit":0}"#,
        "arguments.limit must be at least 1, not 0",
    ),
    (
        r#"{"path":"x","limit":1e9}"#,
        "arguments.limit must be at most 100, not 1e9",
    ),
    (
        r#"{"path":"x","limit":null}"#,
        "arguments.limit must be an integer, not null; omit it, it is optional",
    ),
    (
        r#"{"path":null}"#,
        "arguments.path must be a string, not null",
    ),
    (
        r#"{"path":"x","mode":"reed"}"#,
        "arguments.mode must be one of \"read\", \"write\", not \"reed\"; did you mean \"read\"?",
    ),
    (
        r#"{"path":"x","tags":"a"}"#,
        "arguments.tags must be an array, not \"a\"; put it in an array, even if it is the only element",
    ),
    (
        r#"{"path":"x","tags":"[\"a\"]"}"#,
        "arguments.tags must be an array, not \"[\\\"a\\\"]\"; pass the value itself, not a string with its JSON text",
    ),
    (
        r#"{"path":"x","tags":["a",2]}"#,
        "arguments.tags[1] must be a string, not 2; write \"2\" in quotation marks",
    ),
    (
        r#"{"path":"x","deep":"true"}"#,
        "arguments.deep must be a boolean, not \"true\"; pass true as a boolean, not as a string",
    ),
    (
        r#"{"path":"x","filter":{}}"#,
        "arguments.filter.from is missing: string",
    ),
    (
        r#"{"path":"x","filter":{"from":"a"}}"#,
        "arguments.filter.from must have at least 3 characters, but has 1",
    ),
    (
        r#"{"path":"x","filter":[1,2]}"#,
        "arguments.filter must be an object, not an array of 2",
    ),
    (
        r#"{"path":"x","target":true}"#,
        "arguments.target must be a string or an integer or null, not true",
    ),
    (
        r#"{"path":"x","action":{"kind":"open"}}"#,
        "arguments.action.file is missing: string",
    ),
    (
        r#"{"path":"x","action":{"kind":"shut"}}"#,
        "arguments.action.kind must be \"open\" or \"close\", not \"shut\"",
    ),
    (
        r#"{"path":"x","action":"open"}"#,
        "arguments.action must be an object, not \"open\"",
    ),
    (
        r#""{\"path\":1}""#,
        "arguments must be an object, not \"{\\\"path\\\":1}\"; pass the value itself, not a string with its JSON text",
    ),
];

#[test]
fn words() {
    for (arguments, expected) in WORDS {
        assert_eq!(
            check(SEARCH, arguments).unwrap_err(),
            *expected,
            "{arguments}"
        );
    }
}

#[test]
fn odd_names_and_long_values_are_shown_safely() {
    let schema = r#"{"additionalProperties":{"properties":{"a b":{"type":"integer"}}}}"#;
    let long = "x".repeat(1000);
    let told = check(schema, &format!(r#"{{"\u001b[31m":{{"a b":"{long}"}}}}"#)).unwrap_err();
    let shown = "x".repeat(60);
    assert_eq!(
        told,
        format!("arguments[\"\\u{{1b}}[31m\"][\"a b\"] must be an integer, not \"{shown}…\"")
    );
}

#[test]
fn at_most_five_mismatches_are_reported() {
    let schema = r#"{"items":{"type":"integer"}}"#;
    let value = format!("[{}]", vec!["\"\""; 100].join(","));
    assert_eq!(check(schema, &value).unwrap_err().lines().count(), 5);
}

#[test]
fn long_lists_of_choices_are_truncated() {
    let choices: Vec<_> = (0..50).map(|n| format!("\"choice{n}\"")).collect();
    let told = check(&format!("{{\"enum\":[{}]}}", choices.join(",")), "1").unwrap_err();
    assert!(
        told.contains("\"choice11\", … (50 in total), not 1"),
        "{told}"
    );
}
