//! URIs are exposed and restored, alone and inside results.

use proptest::prelude::*;
use switchboard_catalog::{
    Catalog, Kind, Offers, expose_content, expose_read_result, expose_updated, expose_uri,
};

use crate::{part, raw};

proptest! {
    #[test]
    fn exposed_uri_round_trips(server in any::<String>(), uri in any::<String>()) {
        let catalog = Catalog::from_parts([
            part(&server, Offers::default()),
            part("other", Offers::default()),
        ]);
        let exposed = expose_uri(&server, &uri);
        let target = catalog.resource(&exposed).unwrap();
        prop_assert_eq!((&**target.server, target.name), (&*server, &*uri));
        prop_assert_eq!(catalog.template(&exposed), Some(target));
    }

    #[test]
    fn other_uris_have_no_target(uri in "(switchboard:/{0,3})?[a%/0-9é]{0,8}") {
        let catalog = Catalog::from_parts([part("a", Offers::default())]);
        let target = catalog.resource(&uri);
        let expected = uri.strip_prefix("switchboard://").and_then(|rest| {
            rest.strip_prefix("a/").or_else(|| rest.strip_prefix("%61/"))
        });
        prop_assert_eq!(target.map(|target| target.name), expected);
    }

    #[test]
    fn exposing_odd_results_does_not_panic(text in "[\\[\\]{}\",:a-c ]{0,40}") {
        for text in [
            text.clone(),
            format!(r#"{{"content":[{text}],"type":"resource"}}"#),
            format!(r#"{{"messages":[{{"content":{text}}}],"type":"resource"}}"#),
            format!(r#"{{"contents":[{text}]}}"#),
        ] {
            if let Ok(result) = switchboard_wire::Raw::parse(text) {
                expose_content("s", &result);
                expose_read_result("s", &result);
                expose_updated("s", &result);
            }
        }
    }
}

#[test]
fn pages_keep_their_scheme() {
    let catalog = Catalog::from_parts([part("my app", Offers::default())]);
    let exposed = expose_uri("my app", "ui://clock/a.html");
    assert_eq!(exposed, "ui://my%20app/ui://clock/a.html");
    let target = catalog.resource(&exposed).unwrap();
    assert_eq!(
        (&**target.server, target.name),
        ("my app", "ui://clock/a.html")
    );
    for other in [
        "ui://my%20app/clock",
        "ui://other/ui://clock",
        "ui://my%20app",
    ] {
        assert_eq!(catalog.resource(other), None, "{other}");
    }
    let read = raw(r#"{"contents":[{"uri":"ui:\/\/clock"},{"uri":"x:y"}]}"#);
    assert_eq!(
        expose_read_result("s", &read).as_str(),
        r#"{"contents":[{"uri":"ui://s/ui:\/\/clock"},{"uri":"switchboard://s/x:y"}]}"#
    );
}

#[test]
fn page_addresses_of_tools_are_exposed() {
    for (sent, shown) in [
        (
            r#"{"_meta":{"ui":{"resourceUri":"ui://a","n":1.0},"ui/resourceUri":"ui://b"},"name":"t","inputSchema":{"type":"object"}}"#,
            r#"{"_meta":{"ui":{"resourceUri":"ui://s/ui://a","n":1.0},"ui/resourceUri":"ui://s/ui://b"},"name":"s__t","inputSchema":{"type":"object"}}"#,
        ),
        (
            r#"{ "name":"t", "inputSchema":{"type":"object"}, "_meta":{"ui":{"resource\u0055ri":"ui:\/\/a"}} }"#,
            r#"{ "name":"s__t", "inputSchema":{"type":"object"}, "_meta":{"ui":{"resource\u0055ri":"ui://s/ui:\/\/a"}} }"#,
        ),
        (
            r#"{"name":"t","inputSchema":{"type":"object"},"resourceUri":"ui://a","_meta":{"ui":{"resourceUri":7},"x":{"resourceUri":"ui://a"}}}"#,
            r#"{"name":"s__t","inputSchema":{"type":"object"},"resourceUri":"ui://a","_meta":{"ui":{"resourceUri":7},"x":{"resourceUri":"ui://a"}}}"#,
        ),
    ] {
        let offers = Offers {
            tools: vec![raw(sent)],
            ..Offers::default()
        };
        let part = part("s", offers);
        let own = part.page(Kind::Tool, None).unwrap().encoded(&[]);
        assert_eq!(own.as_str(), format!(r#"{{"tools":[{sent}]}}"#));
        let catalog = Catalog::from_parts([part]);
        let page = catalog.page(Kind::Tool, None).unwrap();
        assert_eq!(
            page.encoded(&[]).as_str(),
            format!(r#"{{"tools":[{shown}]}}"#)
        );
        assert_eq!(
            catalog.tools().next().unwrap().exposed_raw().as_str(),
            shown
        );
    }
}

#[test]
fn read_result_uris_are_exposed() {
    let result = raw(
        r#"{ "contents":[ {"uri" : "file:\/\/\/a","text":"uri","n":1.0}, {"mimeType":"x","uri":"file:///b","blob":""},{"uri":7},{} ],"_meta":{"uri":"x"} }"#,
    );
    assert_eq!(
        expose_read_result("s t", &result).as_str(),
        r#"{ "contents":[ {"uri" : "switchboard://s%20t/file:\/\/\/a","text":"uri","n":1.0}, {"mimeType":"x","uri":"switchboard://s%20t/file:///b","blob":""},{"uri":7},{} ],"_meta":{"uri":"x"} }"#
    );
    for odd in [
        "{}",
        "[]",
        "1",
        r#"{"contents":7}"#,
        r#"{"contents":[7,{"uri":8}]}"#,
    ] {
        assert_eq!(expose_read_result("s", &raw(odd)).as_str(), odd);
    }
}

#[test]
fn tool_result_uris_are_exposed() {
    let result = raw(
        r#"{"content":[{"type":"text","text":"\"resource","uri":"no"},{"type":"resource_link","uri":"u:1","name":"x"},{"uri":"no","resource":{"text":"","uri":"u:2"},"type":"resource"},{"type":"resource"},{"type":"resource","resource":3}],"structuredContent":{"type":"resource_link","uri":"no"}}"#,
    );
    assert_eq!(
        expose_content("s", &result).as_str(),
        r#"{"content":[{"type":"text","text":"\"resource","uri":"no"},{"type":"resource_link","uri":"switchboard://s/u:1","name":"x"},{"uri":"no","resource":{"text":"","uri":"switchboard://s/u:2"},"type":"resource"},{"type":"resource"},{"type":"resource","resource":3}],"structuredContent":{"type":"resource_link","uri":"no"}}"#
    );
}

/// Readers differ in how they parse these, and some find a link.
#[test]
fn links_in_odd_spellings_are_exposed() {
    for (said, exposed) in [
        (
            r#"{"content":[{"type":"\u0072esource_link","uri":"u"}]}"#,
            r#"{"content":[{"type":"\u0072esource_link","uri":"+u"}]}"#,
        ),
        (
            r#"{"content":[{"type":"text","type":"resource_link","uri":"u","uri":"v"}]}"#,
            r#"{"content":[{"type":"text","type":"resource_link","uri":"+u","uri":"+v"}]}"#,
        ),
        (
            r#"{"content":[],"content":[{"type":"resource_link","u\u0072i":"u"}]}"#,
            r#"{"content":[],"content":[{"type":"resource_link","u\u0072i":"+u"}]}"#,
        ),
        (
            r#"{"Content":[7,{"Type":"resource","Resource":{"URI":"u"}}]}"#,
            r#"{"Content":[7,{"Type":"resource","Resource":{"URI":"+u"}}]}"#,
        ),
        (
            r#"{"content":[[{"type":"resource_link","uri":"u"}],[[{"type":"resource_link","uri":"v"}]]]}"#,
            r#"{"content":[[{"type":"resource_link","uri":"+u"}],[[{"type":"resource_link","uri":"+v"}]]]}"#,
        ),
        (
            r#"{"messages":[[{"content":{"type":"tool_result","content":[{"type":"resource_link","uri":"u"}]}}]]}"#,
            r#"{"messages":[[{"content":{"type":"tool_result","content":[{"type":"resource_link","uri":"+u"}]}}]]}"#,
        ),
    ] {
        let exposed = exposed.replace('+', "switchboard://s/");
        assert_eq!(expose_content("s", &raw(said)).as_str(), exposed);
    }
    let read = r#"{"contents":[7,[{"uri":"u","uri":"v"}]]}"#;
    let exposed = r#"{"contents":[7,[{"uri":"switchboard://s/u","uri":"switchboard://s/v"}]]}"#;
    assert_eq!(expose_read_result("s", &raw(read)).as_str(), exposed);
}

#[test]
fn prompt_message_uris_are_exposed() {
    let result = raw(
        r#"{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"u:1"}}},{"role":"user","content":[{"type":"resource_link","uri":"u:2"}]}],"content":[{"type":"resource_link","uri":"u:3"}]}"#,
    );
    assert_eq!(
        expose_content("s", &result).as_str(),
        r#"{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"switchboard://s/u:1"}}},{"role":"user","content":[{"type":"resource_link","uri":"switchboard://s/u:2"}]}],"content":[{"type":"resource_link","uri":"switchboard://s/u:3"}]}"#
    );
}

#[test]
fn result_without_links_is_unchanged() {
    for text in [
        r#"{"content":[{"type":"text","text":"hello"}]}"#,
        r#"{"content":[{"type":"text","text":"a \"resource\""}],"structuredContent":{"type":"resource"}}"#,
    ] {
        let result = raw(text);
        let exposed = expose_content("s", &result);
        assert_eq!(exposed.as_bytes().as_ptr(), result.as_bytes().as_ptr());
    }
    let result = raw(r#"{"content":[{"type":"text","text":"hello"}]}"#);
    let counted = allocation_counter::measure(|| {
        expose_content("s", &result);
    });
    assert_eq!(counted.count_total, 0);
}

#[test]
fn updated_notification_uri_is_exposed() {
    let params = raw(r#"{"_meta":{"uri":1},"uri":"u:1"}"#);
    assert_eq!(
        expose_updated("s", &params).as_str(),
        r#"{"_meta":{"uri":1},"uri":"switchboard://s/u:1"}"#
    );
    assert_eq!(expose_updated("s", &raw("7")).as_str(), "7");
}
