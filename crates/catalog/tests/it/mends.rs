//! Definitions that clients would reject are mended in views of several servers, and nowhere else.

use proptest::prelude::*;
use switchboard_catalog::{Catalog, Kind, Offers};
use switchboard_test_support::assert_linear;

use crate::{part, raw};

fn offers(kind: Kind, definition: &str) -> Offers {
    let list = vec![raw(definition)];
    let mut offers = Offers::default();
    match kind {
        Kind::Tool => offers.tools = list,
        Kind::Prompt => offers.prompts = list,
        Kind::Resource => offers.resources = list,
        Kind::Template => offers.templates = list,
    }
    offers
}

/// The definition in the direct view. Checks that the server's own view has it verbatim.
fn shown(kind: Kind, definition: &str) -> String {
    let catalog = Catalog::from_parts([part("s", offers(kind, definition))]);
    let own = catalog.server("s").unwrap().page(kind, None).unwrap();
    assert!(own.encoded(&[]).as_str().contains(definition));
    let item = catalog.items(kind).next().unwrap();
    assert_eq!(item.raw().as_str(), definition);
    let page = catalog.page(kind, None).unwrap().encoded(&[]);
    assert!(page.as_str().contains(item.exposed_raw().as_str()));
    let mended = catalog.server("s").unwrap().mended().count();
    assert_eq!(mended, usize::from(item.is_mended()));
    item.shown().as_str().to_owned()
}

fn tool(members: &str) -> String {
    format!(r#"{{"name":"t",{members}}}"#)
}

#[test]
fn argument_schema_describes_an_object() {
    for (sent, expected) in [
        (
            r#""title":"x""#,
            r#""title":"x","inputSchema":{"type":"object"}"#,
        ),
        (
            r#""inputSchema":null"#,
            r#""inputSchema":{"type":"object"}"#,
        ),
        (
            r#""inputSchema":true"#,
            r#""inputSchema":{"type":"object"}"#,
        ),
        (r#""inputSchema":[]"#, r#""inputSchema":{"type":"object"}"#),
        (r#""inputSchema":{}"#, r#""inputSchema":{"type":"object"}"#),
        (
            r#""inputSchema":{"properties":{"a":{"type":"string"}},"$schema":"x"}"#,
            r#""inputSchema":{"properties":{"a":{"type":"string"}},"$schema":"x","type":"object"}"#,
        ),
        (
            r#""inputSchema":{"type":["object","null"],"anyOf":[1.50]}"#,
            r#""inputSchema":{"type":"object","anyOf":[1.50]}"#,
        ),
        (
            r#""inputSchema":{"type":"object","properties":[],"required":[1]}"#,
            r#""inputSchema":{"type":"object"}"#,
        ),
        (
            r#""inputSchema":{"type":"object","properties":{"a":true,"b":false,"c":null,"d":{}},"required":["a"]}"#,
            r#""inputSchema":{"type":"object","properties":{"a":{},"b":{"not":{}},"c":{},"d":{}},"required":["a"]}"#,
        ),
    ] {
        assert_eq!(shown(Kind::Tool, &tool(sent)), tool(expected), "{sent}");
    }
}

#[test]
fn numbers_beyond_doubles_are_clamped() {
    let good = r#""inputSchema":{"type":"object","properties":{"a":{"default":@}}}"#;
    let long = format!("1{}", "0".repeat(5_000));
    let minus = format!("-{long}.5");
    for (sent, expected) in [
        ("1e400", "1.7e308"),
        ("[-1E+400,2]", "[-1.7e308,2]"),
        (&*long, "1.7e308"),
        (&*minus, "-1.7e308"),
        ("1e308", "1e308"),
        ("-0.0e-400", "-0.0e-400"),
        (r#""1e400""#, r#""1e400""#),
        (r#""\\\"1e400""#, r#""\\\"1e400""#),
    ] {
        let with = |value: &str| tool(&good.replace('@', value));
        assert_eq!(shown(Kind::Tool, &with(sent)), with(expected), "{sent}");
    }
    let sent = tool(r#""inputSchema":{"$schema":7,"type":"object"}"#);
    let expected = tool(r#""inputSchema":{"type":"object"}"#);
    assert_eq!(shown(Kind::Tool, &sent), expected);
}

#[test]
fn members_of_wrong_type_are_dropped() {
    let good = r#""inputSchema":{"type":"object"}"#;
    for (sent, expected) in [
        (r#","title":null,"description":7"#, ""),
        (
            r#","_meta":null,"icons":null,"annotations":"x","execution":[]"#,
            "",
        ),
        (
            r#","annotations":{"title":1,"readOnlyHint":"true","openWorldHint":false,"x":1}"#,
            r#","annotations":{"openWorldHint":false,"x":1}"#,
        ),
        (r#","execution":{"taskSupport":"maybe"}"#, ""),
        (r#","icons":[{"src":"a"},{"mimeType":"b"}]"#, ""),
        (r#","outputSchema":null"#, ""),
        (r#","outputSchema":{"type":"array","items":{}}"#, ""),
        (r#","outputSchema":{"anyOf":[{}]}"#, ""),
        (
            r#","outputSchema":{"properties":{"a":{}}}"#,
            r#","outputSchema":{"properties":{"a":{}},"type":"object"}"#,
        ),
    ] {
        let sent = tool(&format!("{good}{sent}"));
        assert_eq!(
            shown(Kind::Tool, &sent),
            tool(&format!("{good}{expected}")),
            "{sent}"
        );
    }
}

/// The official TypeScript SDK compiles output schemas, and loses the list to one that it rejects.
#[test]
fn output_schemas_that_may_not_compile_are_dropped() {
    let shows = |schema: &str| {
        let sent = tool(&format!(
            r#""inputSchema":{{"type":"object"}},"outputSchema":{schema}"#
        ));
        shown(Kind::Tool, &sent).contains("outputSchema")
    };
    let property = |schema: &str| format!(r#"{{"type":"object","properties":{{"a":{schema}}}}}"#);
    for good in [
        r#"{"type":["string","null"],"format":"date-time","description":"When."}"#,
        r##"{"$ref":"#"}"##,
        r#"{"type":"string","pattern":"^[a-z0-9_]+(?:-\\d{2,4})?$","minLength":1}"#,
        r#"{"anyOf":[{"type":"integer","minimum":-1.5},true],"default":{"x":1}}"#,
        r#"{"type":"array","items":{"type":"object","additionalProperties":false},"x-order":3}"#,
    ] {
        assert!(shows(&property(good)), "{good}");
    }
    assert!(shows(
        r##"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"string"}}}"##
    ));
    for bad in [
        r##"{"$ref":"#/definitions/none"}"##,
        r#"{"$ref":"https://example.com/x"}"#,
        r#"{"type":"banana"}"#,
        r#"{"type":["string","string"]}"#,
        r#"{"pattern":"["}"#,
        r#"{"pattern":"a**"}"#,
        r#"{"pattern":"\\-"}"#,
        r#"{"pattern":"(a"}"#,
        r#"{"pattern":"[z-a]"}"#,
        r#"{"minimum":"x"}"#,
        r#"{"minLength":-1}"#,
        r#"{"$id":5}"#,
        r#"{"$id":"x"}"#,
        r#"{"$anchor":"x"}"#,
        r#"{"id":"x"}"#,
        r#"{"enum":[]}"#,
        r#"{"allOf":[]}"#,
        r#"{"items":[{}]}"#,
        r#"{"properties":{"__proto__":{}}}"#,
        r#"{"format":"constructor"}"#,
        "7",
    ] {
        let in_array = format!(r#"{{"type":"array","items":{bad}}}"#);
        assert!(!shows(&property(&in_array)), "{bad}");
    }
    // A long list is not compared with itself.
    let [short, long] = [1_000, 100_000].map(|length| {
        let types: Vec<String> = (0..length).map(|n| format!(r#""{n}""#)).collect();
        property(&format!(r#"{{"type":[{}]}}"#, types.join(",")))
    });
    let work = |definition| assert!(!shows(definition));
    assert_linear("a list of types", 100, || work(&short), || work(&long));
}

#[test]
fn prompts_and_resources_are_mended() {
    for (kind, sent, expected) in [
        (
            Kind::Prompt,
            r#"{"name":"p","description":null,"arguments":[{"name":"a","required":"yes"},{"description":"b"},7,{"name":"c","required":true}]}"#,
            r#"{"name":"p","arguments":[{"name":"a"},{"name":"c","required":true}]}"#,
        ),
        (
            Kind::Prompt,
            r#"{"name":"p","arguments":null}"#,
            r#"{"name":"p"}"#,
        ),
        (
            Kind::Resource,
            r#"{"uri":"file:\/\/a","mimeType":null,"size":"1"}"#,
            r#"{"uri":"file:\/\/a","name":"file:\/\/a"}"#,
        ),
        (
            Kind::Resource,
            r#"{"uri":"u:1","name":"n","annotations":{"audience":["all"],"priority":2,"lastModified":"yesterday"}}"#,
            r#"{"uri":"u:1","name":"n","annotations":{}}"#,
        ),
        (
            Kind::Template,
            r#"{"name":3,"uriTemplate":"u:{x}"}"#,
            r#"{"name":"u:{x}","uriTemplate":"u:{x}"}"#,
        ),
    ] {
        assert_eq!(shown(kind, sent), expected, "{sent}");
    }
}

/// Readers in Python and Rust reject the whole page for such a string, at any position.
#[test]
fn lone_surrogates_are_replaced() {
    let good = r#""inputSchema":{"type":"object"}"#;
    for (sent, expected) in [
        (
            format!(r#""description":"cut \ud83d","x":["\uDE00"],{good}"#),
            format!(r#""description":"cut \ufffd","x":["\ufffd"],{good}"#),
        ),
        (
            r#""inputSchema":{"type":"object","properties":{"\ud800":{"enum":["\ud83d\ud83d\ude00"]}}}"#
                .to_owned(),
            r#""inputSchema":{"type":"object","properties":{"\ufffd":{"enum":["\ufffd\ud83d\ude00"]}}}"#
                .to_owned(),
        ),
        // In combination with another defect.
        (
            format!(r#""title":7,"description":"\ud800",{good}"#),
            format!(r#""description":"\ufffd",{good}"#),
        ),
    ] {
        assert_eq!(shown(Kind::Tool, &tool(&sent)), tool(&expected), "{sent}");
    }
    assert_eq!(
        shown(Kind::Prompt, r#"{"name":"p","description":"\udc00"}"#),
        r#"{"name":"p","description":"\ufffd"}"#
    );
}

#[test]
fn unreadable_sizes_are_dropped() {
    for (size, is_good) in [
        ("0", true),
        ("9007199254740992", true),
        ("9007199254740993", false),
        ("1e400", false),
        ("1.5", false),
        ("-1", false),
        ("null", false),
    ] {
        let sent = format!(r#"{{"uri":"u:1","name":"n","size":{size}}}"#);
        let shown = shown(Kind::Resource, &sent);
        assert_eq!(shown.contains("size"), is_good, "{size}");
    }
}

/// Follows the validation of the TypeScript SDK.
#[test]
fn invalid_times_are_dropped() {
    for (time, is_good) in [
        ("2025-01-12T15:00:58Z", true),
        ("2025-01-12T15:00:58.123456789-23:59", true),
        ("2024-02-29T00:00:00Z", true),
        ("2000-02-29T23:59:59Z", true),
        ("2023-02-29T00:00:00Z", false),
        ("1900-02-29T00:00:00Z", false),
        ("2025-04-31T00:00:00Z", false),
        ("2025-00-01T00:00:00Z", false),
        ("2025-13-01T00:00:00Z", false),
        ("2025-01-00T00:00:00Z", false),
        ("2025-01-32T00:00:00Z", false),
        ("2025-01-01T24:00:00Z", false),
        ("2025-01-01T00:60:00Z", false),
        ("2025-01-01T00:00:60Z", false),
        ("2025-01-01T00:00:00+24:00", false),
        ("2025-01-01T00:00:00+00:60", false),
        ("2025-01-01T00:00:00", false),
        ("2025-01-01T00:00:00.Z", false),
        ("2025-01-01t00:00:00z", false),
        ("2025-01-01T00:00Z", false),
        ("2025-01-01", false),
    ] {
        let sent =
            format!(r#"{{"uri":"u:1","name":"n","annotations":{{"lastModified":"{time}"}}}}"#);
        let shown = shown(Kind::Resource, &sent);
        assert_eq!(shown.contains("lastModified"), is_good, "{time}");
    }
}

#[test]
fn valid_definitions_stay_unchanged() {
    for (kind, sent) in [
        (
            Kind::Tool,
            r#"{ "name":"t","title":"T","description":"\ud83d\ude00 \\ud800","inputSchema":{"type":"\u006fbject","properties":{"a":{"type":7}},"required":[]},"outputSchema":{"type":"object"},"annotations":{"title":"t","readOnlyHint":true},"icons":[{"src":"data:","sizes":["1x1"],"theme":"dark"}],"execution":{"taskSupport":"optional"},"_meta":{},"own":null}"#,
        ),
        (
            Kind::Prompt,
            r#"{"name":"p","arguments":[{"name":"a","description":"b","required":false}]}"#,
        ),
        (
            Kind::Resource,
            r#"{"uri":"u:1","name":"n","size":9007199254740992,"mimeType":"text/plain","annotations":{"audience":["user"],"priority":0.5,"lastModified":"2025-01-12T15:00:58.123Z"}}"#,
        ),
        (
            Kind::Resource,
            r#"{"uri":"u:1","name":"n","annotations":{"lastModified":"2025-01-12T15:00:58+02:00"}}"#,
        ),
    ] {
        assert_eq!(shown(kind, sent), sent);
    }
}

/// Readers that validate definitions take the last member.
#[test]
fn last_duplicate_member_counts() {
    let twice = tool(r#""inputSchema":7,"x":1,"inputSchema":{"type":"object"}"#);
    assert_eq!(shown(Kind::Tool, &twice), twice);
    let wrong = tool(r#""inputSchema":{"type":"object"},"x":1,"inputSchema":7,"x":2"#);
    let expected = tool(r#""inputSchema":{"type":"object"},"x":2"#);
    assert_eq!(shown(Kind::Tool, &wrong), expected);
}

/// Half a million members with one name would take hours if each were compared with the others.
#[test]
fn hostile_definition_takes_linear_time() {
    let many = |member: &str, count: usize| vec![member; count].join(",");
    let names: Vec<_> = (0..200_000).map(|n| format!(r#""p{n}":true"#)).collect();
    let definition = tool(&format!(
        r#""inputSchema":{{{},"properties":{{{}}}}},{},"icons":[{}]"#,
        many(r#""type":1"#, 200_000),
        names.join(","),
        many(r#""description":1"#, 500_000),
        many(r#"{"src":1}"#, 100_000),
    ));
    let shown = shown(Kind::Tool, &definition);
    assert!(
        shown.starts_with(r#"{"name":"t","inputSchema":{"type":"object","properties":{"p0":{},"#)
    );
}

fn json() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "null",
        "true",
        "7",
        r#""object""#,
        r#""x""#,
        "[]",
        "{}",
        r#"["a"]"#,
    ]);
    let leaf = leaf.prop_map(str::to_owned);
    leaf.prop_recursive(3, 30, 5, |inner| {
        let names = prop::sample::select(vec![
            "type",
            "properties",
            "required",
            "title",
            "src",
            "name",
            "readOnlyHint",
            "arguments",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|elements| format!("[{}]", elements.join(","))),
            prop::collection::vec((names, inner), 0..5).prop_map(|members| {
                let members = members
                    .iter()
                    .map(|(name, value)| format!("\"{name}\":{value}"));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }),
        ]
    })
}

proptest! {
    /// For any input, a second pass finds nothing to mend, and the schema is one of objects.
    #[test]
    fn mending_is_idempotent(
        members in prop::collection::vec(
            (prop::sample::select(vec![
                "inputSchema", "outputSchema", "annotations", "description", "icons", "execution", "arguments", "_meta",
            ]), json()),
            0..6,
        ),
        kind in prop::sample::select(Kind::ALL.to_vec()),
    ) {
        let members: Vec<_> = members.iter().map(|(name, value)| format!(",\"{name}\":{value}")).collect();
        let definition = format!("{{\"{}\":\"k\"{}}}", kind.key_member(), members.concat());
        let once = shown(kind, &definition);
        prop_assert_eq!(&shown(kind, &once), &once);
        if kind == Kind::Tool {
            let schema = raw(once).member("inputSchema").unwrap();
            prop_assert_eq!(schema.member("type").and_then(|of| of.to_text()), Some("object".to_owned()));
        }
    }
}
