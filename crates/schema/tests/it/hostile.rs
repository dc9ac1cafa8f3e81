//! Schemas and values designed to do harm. A test passes if it ends: all work is bounded, and the
//! bounds are small.

use std::fmt::Write;

use switchboard_schema::{Checker, Unusable, limits, outline, shape};

use crate::raw;

/// Any verdict will do, as long as there is one.
fn survive(schema: &str, value: &str) -> Result<(), Unusable> {
    let schema = raw(schema);
    assert!(outline(&schema, 500).text.len() <= 500);
    assert!(shape(&schema, 500).text.len() <= 500);
    let checker = Checker::compile(&schema)?;
    let _ = checker.check(&raw(value));
    Ok(())
}

fn nested(open: &str, inner: &str, close: &str, depth: usize) -> String {
    format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
}

#[test]
fn endless_references_are_survived() {
    for schema in [
        r##"{"$ref":"#"}"##,
        r##"{"allOf":[{"$ref":"#"},{"$ref":"#"}]}"##,
        r##"{"anyOf":[{"$ref":"#"},{"$ref":"#"},{"$ref":"#"}]}"##,
        r##"{"not":{"$ref":"#"}}"##,
        r##"{"oneOf":[{"not":{"$ref":"#"}},{"if":{"$ref":"#"},"then":{"$ref":"#"},"else":{"$ref":"#"}}]}"##,
        r##"{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}"##,
        r##"{"properties":{"a":{"$ref":"#"}},"additionalProperties":{"$ref":"#"},"items":{"$ref":"#"},"propertyNames":{"$ref":"#"}}"##,
        r##"{"dependentSchemas":{"a":{"$ref":"#"}},"contains":{"$ref":"#"}}"##,
    ] {
        for value in [r#"{"a":{"a":{"a":1}}}"#, "[[[1]]]", "1"] {
            // A schema that only refers to itself gives no verdict, so every value passes.
            let checker = Checker::compile(&raw(schema)).unwrap();
            assert_eq!(checker.check(&raw(value)), Ok(()), "{schema}");
            survive(schema, value).unwrap();
        }
    }
}

#[test]
fn exponentially_growing_schemas_are_survived() {
    let mut definitions = String::new();
    for n in 0..60 {
        let next = n + 1;
        write!(
            definitions,
            r##""d{n}":{{"type":"object","properties":{{"a":{{"$ref":"#/$defs/d{next}"}},"b":{{"$ref":"#/$defs/d{next}"}}}},"anyOf":[{{"$ref":"#/$defs/d{next}"}},{{"$ref":"#/$defs/d{next}"}}]}},"##
        )
        .unwrap();
    }
    let schema = format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{definitions}"d60":false}}}}"##);
    let value = nested(r#"{"b":1,"a":"#, "1", "}", 60);
    survive(&schema, &value).unwrap();
    survive(&schema, "{}").unwrap();
}

#[test]
fn depth() {
    for (open, close) in [
        ("[", "]"),
        (r#"{"items":"#, "}"),
        (r#"{"not":"#, "}"),
        (r#"{"allOf":["#, "]}"),
    ] {
        let deep = nested(open, "{}", close, 200_000);
        assert!(matches!(
            survive(&deep, "[]"),
            Err(Unusable::TooDeep | Unusable::TooLarge(_))
        ));
        let deep = nested(open, "{}", close, 40);
        let _ = survive(&deep, &nested("[", "1", "]", 90));
    }
    // A value that is nested too deeply to check passes.
    let checker = Checker::compile(&raw(r##"{"type":"array","items":{"$ref":"#"}}"##)).unwrap();
    assert_eq!(checker.check(&raw(&nested("[", "1", "]", 100_000))), Ok(()));
    assert!(checker.check(&raw(&nested("[", "1", "]", 20))).is_err());
}

#[test]
fn patterns_that_backtrack_elsewhere_are_survived() {
    let text = format!("\"{}!\"", "a".repeat(20_000));
    for pattern in [
        "^(a+)+$",
        "^(a|aa)+$",
        "^(a|a?)+$",
        "(.*a){12}$",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
    ] {
        survive(&format!(r#"{{"pattern":"{pattern}"}}"#), &text).unwrap();
    }
    let large: Vec<_> = (0..2000)
        .map(|n| format!(r#""a{n}[a-z]{{1,900}}":true"#))
        .collect();
    survive(
        &format!(r#"{{"patternProperties":{{{}}}}}"#, large.join(",")),
        r#"{"a":1}"#,
    )
    .unwrap();
}

#[test]
fn very_large_schemas_and_values_are_survived() {
    let numbers: Vec<_> = (0..10_000).map(|n| n.to_string()).collect();
    let array = format!("[{}]", numbers.join(","));
    let members: Vec<_> = (0..10_000).map(|n| format!("\"m{n}\":{n}")).collect();
    let object = format!("{{{}}}", members.join(","));
    let forms: Vec<_> = (0..800)
        .map(|n| format!(r#"{{"properties":{{"k{n}":true,"kind":{{"const":"{n}"}}}},"required":["k{n}","x","y"],"additionalProperties":false}}"#))
        .collect();
    let forms = forms.join(",");
    for (schema, value) in [
        (format!(r#"{{"enum":{array}}}"#), "-1"),
        (format!(r#"{{"items":{{"enum":{array}}}}}"#), &array),
        (r#"{"uniqueItems":true}"#.to_owned(), &array),
        (
            format!(r#"{{"properties":{object},"additionalProperties":false}}"#),
            &object,
        ),
        (r#"{"additionalProperties":false}"#.to_owned(), &object),
        (format!(r#"{{"anyOf":[{forms}]}}"#), &object),
        (
            format!(r#"{{"anyOf":[{{"anyOf":[{forms}]}},{{"oneOf":[{forms}]}}]}}"#),
            r#"{"kind":"zzz"}"#,
        ),
        (format!(r#"{{"minimum":{}}}"#, "9".repeat(200_000)), "1"),
        (
            format!(
                r#"{{"properties":{{"{}":{{"type":"{}"}}}}}}"#,
                "n".repeat(100_000),
                "t".repeat(100_000)
            ),
            "{}",
        ),
        (
            r#"{"multipleOf":1e-300,"minimum":1e999999999}"#.to_owned(),
            "1e300",
        ),
    ] {
        survive(&schema, value).unwrap();
    }
    assert!(matches!(
        Checker::compile(&raw(&format!(
            "{{\"enum\":[{}]}}",
            vec!["12345678"; limits::SCHEMA_BYTES / 8].join(",")
        ))),
        Err(Unusable::TooLarge(_))
    ));
}

/// The limit itself: a mismatch beyond the limit on steps is not found, one before it is.
#[test]
fn work_beyond_the_limit_is_left_to_server() {
    let choices: Vec<_> = (0..1000).map(|n| n.to_string()).collect();
    let schema = raw(&format!(
        r#"{{"items":{{"enum":[{}]}}}}"#,
        choices.join(",")
    ));
    let checker = Checker::compile(&schema).unwrap();
    let mut elements = vec!["999"; usize::try_from(limits::STEPS).unwrap() / 1000 + 1];
    elements.push("1000");
    assert_eq!(
        checker.check(&raw(&format!("[{}]", elements.join(",")))),
        Ok(())
    );
    elements.reverse();
    let told = checker.check(&raw(&format!("[{}]", elements.join(","))));
    assert!(told.unwrap_err().to_string().starts_with("arguments[0] "));
}

#[test]
fn unusable_schemas_are_refused() {
    for schema in ["1", "null", "\"x\"", "[]"] {
        assert_eq!(survive(schema, "{}"), Err(Unusable::NotASchema));
    }
    assert_eq!(
        survive(r#"{"$schema":"https://example.com/own"}"#, "{}"),
        Err(Unusable::Dialect("https://example.com/own".to_owned()))
    );
}

#[test]
fn control_characters_are_escaped() {
    let hidden = r"\u0000\u001b[2J\r\n\u202e\u2066\u200b\u0085";
    let schema = raw(&format!(
        r#"{{"properties":{{"{hidden}":{{"enum":["{hidden}"],"default":"{hidden}","description":"{hidden} words"}}}},"required":["{hidden}"],"additionalProperties":false}}"#
    ));
    let told = Checker::compile(&schema)
        .unwrap()
        .check(&raw(&format!(r#"{{"{hidden}x":1}}"#)));
    let told = told.unwrap_err().to_string();
    for text in [outline(&schema, 900).text, shape(&schema, 900).text, told] {
        let odd = |c: char| {
            c.is_control() && c != '\n' || matches!(c, '\u{202e}' | '\u{2066}' | '\u{200b}')
        };
        assert!(!text.contains(odd), "{text:?}");
        assert!(text.contains("\\u{1b}"), "{text:?}");
    }
}
