//! Names cannot collide, no matter how servers and tools are named.

use std::collections::{BTreeMap, BTreeSet};

use proptest::{collection, prelude::*, sample};
use switchboard_catalog::{Catalog, Kind, Offers, limits};

use crate::{named, part, tools};

/// The names of each server's tools.
type Servers = BTreeMap<String, BTreeSet<String>>;

fn catalog(servers: &Servers) -> Catalog {
    Catalog::from_parts(
        servers
            .iter()
            .map(|(server, names)| part(server, tools(names))),
    )
}

fn exposed(catalog: &Catalog) -> Vec<(String, String, String)> {
    catalog
        .tools()
        .map(|tool| {
            let (server, name) = (tool.server().to_string(), tool.name().to_owned());
            (server, name, tool.exposed().to_owned())
        })
        .collect()
}

fn check(servers: &Servers) {
    let catalog = catalog(servers);
    let all = exposed(&catalog);
    assert_eq!(
        all.len(),
        servers.values().map(BTreeSet::len).sum::<usize>()
    );
    let distinct: BTreeSet<_> = all.iter().map(|(_, _, exposed)| exposed).collect();
    assert_eq!(
        distinct.len(),
        all.len(),
        "two tools have one name: {all:?}"
    );
    for (server, name, exposed) in &all {
        let target = catalog.tool(exposed).unwrap();
        assert_eq!((&**target.server, target.name), (&**server, &**name));
        assert!(exposed.len() <= limits::NAME_CHARACTERS, "{exposed}");
        let allowed = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        assert!(exposed.chars().all(allowed), "{exposed}");
        let plain = format!("{server}__{name}");
        let clean = !server.is_empty()
            && plain.chars().all(allowed)
            && plain.len() <= limits::NAME_CHARACTERS
            && !server.contains("__")
            && !server.ends_with('_');
        assert_eq!(clean, plain == *exposed, "{exposed}");
    }
    // The result does not depend on the order of insertion, or on the way of construction.
    let grown = servers
        .iter()
        .rev()
        .fold(Catalog::default(), |grown, (server, names)| {
            grown.with(server, Some(part(server, tools(names))))
        });
    assert_eq!(exposed(&grown), all);
    assert_eq!(grown.hashes()[0], catalog.hashes()[0]);
}

/// Adds tools whose names are the tails of other tools' exposed names, wherever a server's name
/// fits.
fn imitate(servers: &mut Servers) {
    for (_, _, exposed) in exposed(&catalog(servers)) {
        for (server, names) in &mut *servers {
            if let Some(tail) = exposed.strip_prefix(&format!("{server}__")) {
                names.insert(tail.to_owned());
            }
        }
    }
}

fn server() -> impl Strategy<Value = String> {
    let pool = [
        "a", "A", "b", "a_", "a__", "a__b", "a_b", "a b", "a.b", "a-b", "_", "__", "_a", "", "é",
        "ü", " ", "a\n", "a/b", "a:b",
    ];
    prop_oneof![
        8 => sample::select(pool.to_vec()).prop_map(str::to_owned),
        1 => "[a-b]{40,70}",
        1 => any::<String>(),
    ]
}

fn tool() -> impl Strategy<Value = String> {
    let pool = [
        "", "x", "_x", "__x", "b__x", "_b__x", "x y", "x_y", "x.y", "é", "x\0", "😀",
    ];
    prop_oneof![
        8 => sample::select(pool.to_vec()).prop_map(str::to_owned),
        1 => "[xy]{50,66}",
        1 => Just("x".repeat(300)),
        1 => any::<String>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn names_never_collide(
        mut servers in collection::btree_map(server(), collection::btree_set(tool(), 0..6), 0..8),
    ) {
        check(&servers);
        for _ in 0..3 {
            imitate(&mut servers);
            check(&servers);
        }
    }
}

#[test]
fn clean_name_displaces_hashed_name() {
    let hashed = part("a b", tools(["x"]));
    let alone = Catalog::from_parts([hashed.clone()]);
    let first = alone.tools().next().unwrap().exposed().to_owned();
    let tail = first.strip_prefix("a_b__").unwrap();

    // The server `a_b` has a tool with that very name as its clean name.
    let both = alone.with("a_b", Some(part("a_b", tools([tail]))));
    assert_eq!(&**both.tool(&first).unwrap().server, "a_b");
    let moved = both.tools().find(|tool| &**tool.server() == "a b").unwrap();
    assert_ne!(moved.exposed(), first);
    assert!(moved.exposed().starts_with("a_b__x_"));
    assert_eq!(both.tool(moved.exposed()).unwrap().name, "x");
    assert!(moved.exposed_raw().as_str().contains(moved.exposed()));
    let listed = both.page(Kind::Tool, None).unwrap().encoded(&[]);
    assert!(listed.as_str().contains(moved.exposed()));

    // When it is removed, the old names return.
    let again = both.with("a_b", None);
    assert_eq!(again.hashes()[0], alone.hashes()[0]);
    assert!(again.tool(&first).is_some());
}

#[test]
fn tools_and_prompts_have_separate_names() {
    let offers = Offers {
        tools: vec![named("x")],
        prompts: vec![named("x"), named("y z")],
        ..Offers::default()
    };
    let catalog = Catalog::from_parts([part("a", offers)]);
    assert_eq!(catalog.tool("a__x").unwrap().name, "x");
    assert_eq!(catalog.prompt("a__x").unwrap().name, "x");
    let second = catalog.prompts().nth(1).unwrap().exposed();
    assert_eq!(catalog.prompt(second).unwrap().name, "y z");
    assert!(catalog.tool(second).is_none());
}

#[test]
fn unknown_names_are_unknown() {
    let catalog = Catalog::from_parts([part("a", tools(["x", "y y"])), part("b_", tools(["x"]))]);
    for name in [
        "", "a", "a__", "a__y", "a__y y", "a__y_y", "b___x", "b__x", "b_", "__", "x", "c__x",
    ] {
        assert_eq!(catalog.tool(name), None, "{name}");
    }
}

#[test]
fn tool_lookup_does_not_allocate() {
    let catalog = Catalog::from_parts([
        part("files", tools(["read", "write", "make a folder"])),
        part("my server", tools(["read"])),
    ]);
    let names: Vec<_> = catalog
        .tools()
        .map(|tool| tool.exposed().to_owned())
        .collect();
    let counted = allocation_counter::measure(|| {
        for name in &names {
            assert!(catalog.tool(name).is_some());
        }
        assert!(catalog.tool("files__none").is_none());
        assert!(catalog.resource("switchboard://files/file:///a").is_some());
    });
    assert_eq!((names.len(), counted.count_total), (4, 0));
}
