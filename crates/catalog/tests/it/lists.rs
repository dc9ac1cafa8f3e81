//! The contents and order of lists.

use std::sync::Arc;

use switchboard_catalog::{Catalog, Kind, Offers, Presented, ServerPart, limits};

use switchboard_wire::Raw;

use crate::{named, part, raw, tools};

fn exposed(catalog: &Catalog, kind: Kind) -> Vec<&str> {
    catalog.items(kind).map(|item| item.exposed()).collect()
}

#[test]
fn only_the_name_in_a_definition_changes() {
    let tool = r#"{ "title":"name", "n" : 12345678901234567890123, "inputSchema":{"type":"object","name":1.50}, "na\u006de" :"re\u0061d" , "x":"\ud83d\ude00"}"#;
    let resource = r#"{"name":"uri","ur\u0069":"file:\/\/\/a\u0020b","size":12}"#;
    let template = r#"{"uriTemplate" : "file:///{path}" ,"name":"t"}"#;
    let offers = Offers {
        tools: vec![raw(tool)],
        resources: vec![raw(resource)],
        templates: vec![raw(template)],
        ..Offers::default()
    };
    let catalog = Catalog::from_parts([part("my files", offers)]);
    let shown = catalog.tools().next().unwrap();
    assert_eq!(shown.name(), "read");
    assert_eq!(
        shown.exposed_raw().as_str(),
        tool.replace(r"re\u0061d", shown.exposed())
    );
    assert_eq!(shown.raw().as_str(), tool);
    let shown = catalog.resources().next().unwrap();
    assert_eq!(shown.exposed(), "switchboard://my%20files/file:///a b");
    assert_eq!(
        shown.exposed_raw().as_str(),
        r#"{"name":"uri","ur\u0069":"switchboard://my%20files/file:\/\/\/a\u0020b","size":12}"#
    );
    let shown = catalog.templates().next().unwrap();
    assert_eq!(
        shown.exposed_raw().as_str(),
        r#"{"uriTemplate" : "switchboard://my%20files/file:///{path}" ,"name":"t"}"#
    );
    for kind in Kind::ALL {
        for item in catalog.items(kind) {
            let found = catalog.find(kind, item.exposed()).unwrap();
            assert_eq!(found.raw(), item.raw());
        }
    }
}

#[test]
fn servers_are_sorted_and_tools_keep_order() {
    let catalog = Catalog::from_parts([
        part("b", tools(["z", "a"])),
        part("c", tools([""; 0])),
        part("a", tools(["y", "x"])),
    ]);
    assert_eq!(
        exposed(&catalog, Kind::Tool),
        ["a__y", "a__x", "b__z", "b__a"]
    );
    assert_eq!(catalog.count(Kind::Tool), 4);
    assert_eq!(catalog.servers().len(), 3);
}

#[test]
fn last_part_of_a_name_wins() {
    let catalog = Catalog::from_parts([
        part("a", tools(["old"])),
        part("b", tools(["x"])),
        part("a", tools(["new"])),
    ]);
    assert_eq!(exposed(&catalog, Kind::Tool), ["a__new", "b__x"]);
}

#[test]
fn broken_item_is_left_out_alone() {
    let offers = Offers {
        tools: vec![
            raw("7"),
            named("good"),
            raw("{}"),
            raw(r#"{"name":null}"#),
            raw(r#"["name","x"]"#),
            raw(r#"{"name":"a","name":"b"}"#),
            raw(r#"{"name":"\ud800"}"#),
            raw(r#"{"name":"good","second":true}"#),
            named(&"x".repeat(limits::KEY_BYTES + 1)),
            named("also good"),
        ],
        ..Offers::default()
    };
    let part = part("a", offers);
    let names: Vec<_> = part.items(Kind::Tool).map(|tool| tool.name()).collect();
    assert_eq!(names, ["good", "also good"]);
    assert!(
        !part
            .find(Kind::Tool, "good")
            .unwrap()
            .raw()
            .as_str()
            .contains("second")
    );
    assert_eq!(part.problems().count, 8);
    assert_eq!(part.problems().messages.len(), 8);
    let said = part.problems().messages.join("\n");
    assert!(
        said.contains("tools[0] is ignored: it is not a valid object"),
        "{said}"
    );
    assert!(
        said.contains("tools[7] is ignored: it has the same name as an earlier one, \"good\""),
        "{said}"
    );
}

#[test]
fn number_of_items_is_limited() {
    let mut names: Vec<_> = (0..limits::ITEMS + 5).map(|n| format!("t{n}")).collect();
    names[1] = "t0".to_owned();
    let part = part("a", tools(names));
    assert_eq!(part.count(Kind::Tool), limits::ITEMS - 1);
    assert_eq!(part.problems().count, 6);
    let broken = Offers {
        prompts: vec![raw("1"); 1000],
        ..Offers::default()
    };
    let problems = crate::part("a", broken).problems().clone();
    assert_eq!(
        (problems.count, problems.messages.len()),
        (1000, limits::PROBLEMS)
    );
}

#[test]
fn hidden_tool_is_hidden_everywhere() {
    let offers = Arc::new(Offers {
        prompts: vec![named("rm")],
        ..tools(["ls", "rm"])
    });
    let is_shown =
        |kind, name: &str, _: &Raw| Presented::unchanged_if(kind != Kind::Tool || name != "rm");
    let part = ServerPart::prepare("a", offers, &is_shown);
    let catalog = Catalog::from_parts([Arc::new(part)]);
    assert_eq!(exposed(&catalog, Kind::Tool), ["a__ls"]);
    assert_eq!(catalog.tool("a__rm"), None);
    let server = catalog.server("a").unwrap();
    assert!(server.find(Kind::Tool, "rm").is_none());
    let listed = server.page(Kind::Tool, None).unwrap().encoded(&[]);
    let only = r#"{"tools":[{"name":"ls","inputSchema":{"type":"object"}}]}"#;
    assert_eq!(listed.as_str(), only);
    assert_eq!(server.problems().count, 0);
    assert!(catalog.prompt("a__rm").is_some(), "the filter is for tools");
}

#[test]
fn next_catalog_shares_unchanged_parts() {
    let one = Catalog::from_parts([part("a", tools(["x"])), part("b", tools(["y"]))]);
    let two = one.with("b", Some(part("b", tools(["y", "z"]))));
    assert!(Arc::ptr_eq(
        one.server("a").unwrap(),
        two.server("a").unwrap()
    ));
    assert_eq!(exposed(&two, Kind::Tool), ["a__x", "b__y", "b__z"]);
    assert_eq!(exposed(&one, Kind::Tool), ["a__x", "b__y"]);
    let three = two.with("a", None);
    assert!(three.server("a").is_none());
    assert_eq!(exposed(&three, Kind::Tool), ["b__y", "b__z"]);
}

#[test]
fn hashes_change_with_their_list_only() {
    let offers = Offers {
        prompts: vec![named("p")],
        resources: vec![raw(r#"{"uri":"u:1"}"#)],
        templates: vec![raw(r#"{"uriTemplate":"u:{x}"}"#)],
        ..tools(["x", "y"])
    };
    let base = Catalog::from_parts([part("a", offers.clone())]);
    let before = base.hashes();
    let changed = |change: &dyn Fn(&mut Offers)| {
        let mut offers = offers.clone();
        change(&mut offers);
        let next = base.with("a", Some(part("a", offers)));
        let after = next.hashes();
        let (old, new) = (base.server("a").unwrap(), next.server("a").unwrap());
        let differing = |old: [u64; 3], new: [u64; 3]| [0, 1, 2].map(|at| old[at] != new[at]);
        let own = differing(old.hashes(), new.hashes());
        let direct = differing(before, after);
        assert_eq!(own, direct);
        direct
    };
    assert_eq!(changed(&|_| {}), [false, false, false]);
    assert_eq!(
        changed(&|o| o.instructions = Some("new".into())),
        [false, false, false]
    );
    assert_eq!(changed(&|o| o.tools.reverse()), [true, false, false]);
    assert_eq!(
        changed(&|o| o.tools[0] = raw(r#"{"name":"x","title":"X"}"#)),
        [true, false, false]
    );
    assert_eq!(changed(&|o| o.prompts.clear()), [false, true, false]);
    assert_eq!(changed(&|o| o.resources.clear()), [false, false, true]);
    assert_eq!(changed(&|o| o.templates.clear()), [false, false, true]);

    // A server without offers changes nothing.
    let more = base.with("b", Some(part("b", Offers::default())));
    assert_eq!(more.hashes(), before);
    // The same tools under another server's name count as different tools.
    let other = Catalog::from_parts([part("b", offers)]);
    assert_ne!(other.hashes()[0], base.hashes()[0]);
    assert_eq!(
        Catalog::default().hashes()[0],
        Catalog::from_parts([]).hashes()[0]
    );
}

#[test]
fn wrong_name_gets_a_suggestion() {
    let catalog = Catalog::from_parts([
        part("math", tools(["add", "subtract"])),
        part("files", tools(["read_file"])),
    ]);
    assert_eq!(catalog.suggest_tool("math:add"), Some("math__add"));
    assert_eq!(catalog.suggest_tool("readFile"), Some("files__read_file"));
    assert_eq!(catalog.suggest_tool("book_a_flight"), None);
    assert_eq!(catalog.suggest_tool(&"x".repeat(100_000)), None);
    let math: &ServerPart = catalog.server("math").unwrap();
    assert_eq!(math.suggest_tool("substract"), Some("subtract"));
}

#[test]
fn compact_list_hides_nothing_from_lookups() {
    let all = || tools(["a", "b", "c d"]);
    let two = part("two", tools(["z"]));
    let plain = Catalog::from_parts([part("one", all()), Arc::clone(&two)]);
    let brief = raw(r#"{"name":"b","description":"short","inputSchema":{"type":"object"}}"#);
    let listed = [named("c d"), brief, named("unknown")];
    let one = ServerPart::prepare("one", Arc::new(all()), &|_, _, _| Presented::Unchanged)
        .listing(&listed);
    let catalog = Catalog::from_parts([Arc::new(one), two]);
    let page = catalog.page(Kind::Tool, None).unwrap();
    assert_eq!(
        page.encoded(&[]).as_str(),
        r#"{"tools":[{"name":"one__b","description":"short","inputSchema":{"type":"object"}},{"name":"two__z","inputSchema":{"type":"object"}}]}"#
    );
    assert_eq!(catalog.count(Kind::Tool), 2);
    assert_ne!(catalog.hashes()[0], plain.hashes()[0]);
    let part = catalog.server("one").unwrap();
    assert_eq!(part.page(Kind::Tool, None).unwrap().items().count(), 3);
    assert_eq!(catalog.tool("one__a").unwrap().name, "a");
    let found = catalog.find(Kind::Tool, "one__b").unwrap();
    assert!(found.raw().member("description").is_none());
}

/// Renames a tool to `new`.
fn renaming(kind: Kind, name: &str, raw: &Raw) -> Presented {
    match (kind, name) {
        (Kind::Tool, "old" | "other") => {
            Presented::Changed(raw.with_member("name", &Raw::string("new")).unwrap())
        }
        _ => Presented::Unchanged,
    }
}

#[test]
fn changed_name_leads_to_the_own_name() {
    let part = ServerPart::prepare("a", Arc::new(tools(["old", "x"])), &renaming);
    assert_eq!(part.find_shown(Kind::Tool, "new").unwrap().name(), "old");
    assert!(part.find_shown(Kind::Tool, "old").is_none());
    let own = part.find(Kind::Tool, "old").unwrap();
    assert!(own.is_changed() && own.raw().as_str().contains("\"old\""));
    let catalog = Catalog::from_parts([Arc::new(part)]);
    assert_eq!(exposed(&catalog, Kind::Tool), ["a__new", "a__x"]);
    let target = catalog.tool("a__new").unwrap();
    assert_eq!((&**target.server, target.name), ("a", "old"));
    assert_eq!(catalog.tool("a__old"), None);
    let page = catalog.page(Kind::Tool, None).unwrap().encoded(&[]);
    assert!(page.as_str().contains("\"a__new\""), "{page:?}");
}

#[test]
fn given_name_belongs_to_one_item() {
    for names in [["new", "old", "other"], ["old", "other", "new"]] {
        let part = ServerPart::prepare("a", Arc::new(tools(names)), &renaming);
        assert_eq!(part.count(Kind::Tool), 1);
        assert_eq!(part.find_shown(Kind::Tool, "new").unwrap().name(), "old");
        assert!(part.find(Kind::Tool, "new").is_none());
        assert_eq!(part.problems().count, 2, "{:?}", part.problems());
    }
}
