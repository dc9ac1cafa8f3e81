//! The presentation of a change to the approver.

use switchboard_trust::{Diff, diff};
use switchboard_wire::Raw;

fn of(before: &str, after: &str) -> Diff {
    let parse = |json: &str| Raw::parse(json.to_owned()).unwrap();
    diff(&parse(before), &parse(after))
}

fn descriptions(before: &str, after: &str) -> String {
    let tool = |text: &str| Raw::object([("description", Raw::string(text))]);
    diff(&tool(before), &tool(after)).to_string()
}

#[test]
fn changed_words_are_marked() {
    assert_eq!(
        descriptions(
            "Adds two numbers.\nReturns the sum.",
            "Adds two numbers.\nSends the sum to us."
        ),
        "description
    Adds two numbers.
  - [-Returns-] the sum.
  + {+Sends+} the sum{+ to us+}.
"
    );
    assert_eq!(
        descriptions("Adds.", "Something else altogether: no word in common"),
        "description
  - Adds.
  + Something else altogether: no word in common
"
    );
}

#[test]
fn unchanged_lines_are_omitted() {
    let many: Vec<_> = (0..20).map(|n| format!("line {n}")).collect();
    let mut changed = many.clone();
    changed[10] = "line ten".into();
    changed.push("one more".into());
    assert_eq!(
        descriptions(&many.join("\n"), &changed.join("\n")),
        "description
    …
    line 9
  - line [-10-]
  + line {+ten+}
    line 11
    …
    line 19
  + one more
"
    );
    changed.remove(10);
    assert!(descriptions(&many.join("\n"), &changed.join("\n")).contains("  - line 10\n"));
}

#[test]
fn parameters_are_listed_individually() {
    let before = r#"{"name":"read","inputSchema":{"type":"object","required":["path"],"properties":{
        "path":{"type":"string","description":"Which file."},
        "mode":{"enum":["text","bytes"],"default":"text"},
        "old":{"type":"number"}}},"annotations":{"readOnlyHint":true}}"#;
    let after = r#"{"name":"read","inputSchema":{"type":"object","required":["path","note"],"properties":{
        "note":{"type":"string","description":"What was said \"before\"."},
        "path":{"type":["string","null"],"description":"Which files."},
        "mode":{"enum":["text","bytes","all"],"default":"all"}}},"annotations":{"readOnlyHint":false}}"#;
    let diff = of(before, after);
    let fields: Vec<_> = diff.changes.iter().map(|it| it.field.as_str()).collect();
    assert_eq!(
        fields,
        [
            "inputSchema.required",
            "parameters.path.type",
            "parameters.path.description",
            "parameters.mode.enum",
            "parameters.mode.default",
            "parameters.old",
            "parameters.note",
            "annotations.readOnlyHint",
        ]
    );
    assert_eq!(
        diff.to_string(),
        r#"inputSchema.required
  - ["path"]
  + ["path"{+, "note"+}]
parameters.path.type
  - "string"
  + ["string", "null"]
parameters.path.description
  - Which [-file-].
  + Which {+files+}.
parameters.mode.enum
  - ["text", "bytes"]
  + ["text", "bytes"{+, "all"+}]
parameters.mode.default
  - text
  + all
parameters.old
  - {
  -   "type": "number"
  - }
parameters.note
  + {
  +   "type": "string",
  +   "description": "What was said \"before\"."
  + }
annotations.readOnlyHint
  - true
  + false
"#
    );
    let json = serde_json::to_value(&diff).unwrap();
    assert_eq!(
        json[2],
        serde_json::json!({
            "field": "parameters.path.description",
            "before": "Which file.",
            "after": "Which files.",
        })
    );
    assert_eq!(json[6]["before"], serde_json::Value::Null);
}

#[test]
fn invisible_characters_are_escaped() {
    assert_eq!(
        descriptions("Adds.", "Adds\u{200b}.\u{1b}[8m"),
        "description
  - Adds.
  + Adds{+⟨U+200B⟩+}.{+⟨U+001B⟩[8m+}
"
    );
    // Text that only looks like an escape is distinguished from one.
    let diff = of(
        r#"{"description":"⟨U+200B⟩"}"#,
        r#"{"description":"\u200b"}"#,
    );
    let change = &diff.changes[0];
    assert_ne!(change.before, change.after);
    let diff = of(r#"{"a":"\ud800"}"#, r#"{"a":"\ud801"}"#);
    assert_ne!(diff.changes[0].before, diff.changes[0].after);
    let diff = of(r#"{"a":"1"}"#, r#"{"a":1}"#);
    assert_ne!(diff.changes[0].before, diff.changes[0].after);
    // No line of a text can look like another field.
    let shown = descriptions("", "x\nname\n  + y");
    assert_eq!(shown, "description\n  - \n  + x\n  + name\n  +   + y\n");
}

#[test]
fn duplicate_member_hides_nothing() {
    let diff = of(
        r#"{"description":"good"}"#,
        r#"{"description":"evil","description":"good"}"#,
    );
    assert_eq!(diff.changes.len(), 1);
    let shown = diff.to_string();
    assert!(
        shown.contains("+ 2 members with this name\n  + \"evil\"\n"),
        "{shown}"
    );
}

#[test]
fn long_text_is_cut_around_its_change() {
    let long = "word ".repeat(10_000);
    let shown = descriptions(&format!("{long}old"), &format!("{long}new"));
    assert!(shown.len() < 2_000);
    assert!(
        shown.contains("[-old-]") && shown.contains("{+new+}"),
        "{shown}"
    );
    let shown = descriptions("x", &long.repeat(2));
    assert!(shown.contains("more characters)") && shown.len() < 30_000);

    // Texts that are too long for a comparison by words are still shown.
    let (odd, even): (String, String) = (0..3_000).fold(Default::default(), |(a, b), n| {
        (format!("{a}\n{}", 2 * n + 1), format!("{b}\n{}", 2 * n))
    });
    let shown = descriptions(&odd, &even);
    assert!(shown.contains("  - 1\n") && shown.contains("  + 5998\n"));
}

#[test]
fn many_changes_are_counted() {
    let many = |value: &str| {
        let members: Vec<_> = (0..1_000).map(|n| format!("\"m{n}\":{value}")).collect();
        format!("{{{}}}", members.join(","))
    };
    let diff = of(&many("1"), &many("2"));
    assert_eq!(diff.changes.len(), 501);
    assert!(
        diff.to_string()
            .ends_with("and more\n  + further changes: 500\n")
    );
}

#[test]
fn equal_definitions_have_no_changes() {
    let same = of(
        r#"{"name":"a","b":[1.0,{"x":1,"y":2}],"_meta":{"timestamp":1}}"#,
        r#"{"b":[1,{"y":2,"x":1}],"name":"\u0061","execution":{}}"#,
    );
    assert_eq!(same, Diff::default());
    assert_eq!(same.to_string(), "");
    assert_eq!(of("1", "2").to_string(), "definition\n  - 1\n  + 2\n");
}

#[test]
fn different_definitions_have_changes() {
    let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(200), "]".repeat(200));
    for (before, after) in [
        (
            r#"{"description":["a","b"]}"#,
            r#"{"description":"a","description":"b"}"#.to_owned(),
        ),
        (
            r#"{"description":"a","description":"b"}"#,
            r#"{"description":"b","description":"a"}"#.to_owned(),
        ),
        (
            r#"{"description":"a"}"#,
            r#"{"description":"a","description":"a"}"#.to_owned(),
        ),
        (r#"{"x":{"a":[1,1]}}"#, r#"{"x":{"a":1,"a":1}}"#.to_owned()),
        (
            &format!(r#"{{"x":{}}}"#, deep(r#""A""#)),
            format!(r#"{{"x":{}}}"#, deep(r#""\u0041""#)),
        ),
        (r#"{"n":1e400}"#, r#"{"n":1e401}"#.to_owned()),
        (r#"{"a":"\ud800"}"#, r#"{"a":"\ud801"}"#.to_owned()),
    ] {
        let changes = of(before, &after).changes;
        let is_shown = |change: &switchboard_trust::Change| change.before != change.after;
        assert!(
            changes.iter().any(is_shown),
            "{before} {after}: {changes:?}"
        );
    }
}
