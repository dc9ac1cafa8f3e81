//! Outlines and shapes of schemas.

use switchboard_schema::{outline, shape};

use crate::raw;

#[test]
fn signatures() {
    for (schema, expected) in [
        ("{}", ""),
        ("true", ""),
        (r#"{"type":"object"}"#, ""),
        (r#"{"type":"object","properties":{}}"#, ""),
        (
            r#"{"type":"object","properties":{
                "limit":{"type":"integer","default":10},
                "mode":{"enum":["r","w"]},
                "path":{"type":"string"},
                "tags":{"type":"array","items":{"type":"string"}},
                "filter":{"type":"object","properties":{"to":{"type":"string"},"from":{"type":"string"}},"required":["from"]}
            },"required":["path"]}"#,
            r#"path: string, limit?: integer = 10, mode?: "r"|"w", tags?: string[], filter?: {from: string, to?: string}"#,
        ),
        (
            r#"{"properties":{"a":{"type":["string","null"]},"b":{"anyOf":[{"type":"integer"},{"type":"string"}]},"c":{},"d":{"const":7},"e":{"items":{"type":["integer","null"]}}}}"#,
            "a?: string|null, b?: integer|string, c?: any, d?: 7, e?: (integer|null)[]",
        ),
        (
            r##"{"properties":{"a":{"$ref":"#/$defs/p"},"b":{"$ref":"#/$defs/node"},"c":{"$ref":"other.json#/x-y"}},"$defs":{"p":{"type":"object","properties":{"x":{"type":"number"}}},"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"}}}}}"##,
            "a?: {x?: number}, b?: {next?: node}, c?: any",
        ),
        (
            r#"{"allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"boolean","default":false}}}]}"#,
            "a: string, b?: boolean = false",
        ),
        (
            r#"{"oneOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"type":"object","properties":{"b":{"type":"string"}}}]}"#,
            "{a: string}|{b?: string}",
        ),
        (
            r#"{"properties":{"m":{"type":"object","additionalProperties":{"type":"integer"}},"t":{"prefixItems":[{"type":"string"},{"type":"integer"}]},"n":{"type":"string","nullable":true},"o":{"type":"object"},"l":{"type":"array"}}}"#,
            "m?: {[key]: integer}, t?: [string, integer], n?: string|null, o?: object, l?: any[]",
        ),
        (
            r#"{"properties":{"a-b":{"type":"string","default":"x\ny"},"\u0007":{"type":"string"}},"required":["a-b"]}"#,
            r#""a-b": string, "\u{7}"?: string"#,
        ),
    ] {
        let outline = outline(&raw(schema), 1000);
        assert_eq!(outline.text, expected, "{schema}");
        let cut = expected.contains("node}") || expected.contains('…');
        assert_eq!(outline.whole, !cut, "{schema}");
    }
}

#[test]
fn outline_is_cut_between_parameters() {
    let schema = raw(r#"{"properties":{
            "filter":{"type":"object","properties":{"from":{"type":"string"},"until":{"type":"string"}}},
            "path":{"type":"string"},
            "limit":{"type":"integer"}
        },"required":["path"]}"#);
    for (budget, expected) in [
        (
            200,
            "path: string, filter?: {from?: string, until?: string}, limit?: integer",
        ),
        (60, "path: string, filter?: {…}, limit?: integer"),
        (40, "path: string, filter?: {…}, …"),
        (20, "path: string, …"),
        (10, "…"),
        (2, ""),
        (0, ""),
    ] {
        let outline = outline(&schema, budget);
        assert_eq!(outline.text, expected);
        assert_eq!(outline.whole, budget == 200, "{budget}");
    }
}

#[test]
fn shapes_have_lines_and_descriptions() {
    let schema = raw(r#"{"properties":{
            "edits":{"type":"array","description":"What to change","items":{"type":"object","properties":{
                "old":{"type":"string","description":"Text to look for,\nas it stands in the file"},
                "new":{"type":"string"}},"required":["old","new"]}},
            "path":{"type":"string"},
            "limit":{"type":"integer","minimum":1,"maximum":9,"default":3,"description":"How many"}
        },"required":["path","edits"]}"#);
    assert_eq!(
        shape(&schema, 1000).text,
        "edits: { — What to change\n  \
           old: string — Text to look for, as it stands in the file\n  \
           new: string\n\
         }[]\n\
         path: string\n\
         limit?: integer = 3 (1 to 9) — How many"
    );
    assert_eq!(
        shape(&schema, 100).text,
        "edits: {\n  old: string\n  new: string\n}[]\npath: string\nlimit?: integer = 3 (1 to 9)"
    );
    assert_eq!(shape(&schema, 30).text, "edits: {\n  old: string\n…");
    assert!(shape(&schema, 100).whole && !shape(&schema, 30).whole);
}
