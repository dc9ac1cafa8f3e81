//! `switchboard memory`: each command, with and without a running gateway.

use serde_json::{Value, json};

use crate::{
    support::{Gateway, Place, json as answer},
    terminal,
};

/// Stores a memory and returns its ID.
#[track_caller]
pub(crate) fn store(place: &Place, args: &[&str]) -> String {
    let done = place.run(&[&["memory", "store"], args].concat());
    assert_eq!(done.code, Some(0), "{done:?}");
    let id = done.out.trim_end().to_owned();
    assert!(!id.is_empty() && !id.contains(char::is_whitespace), "{id}");
    id
}

/// The texts of all memories, oldest first.
#[track_caller]
pub(crate) fn contents(place: &Place, args: &[&str]) -> Vec<String> {
    let list = answer(
        place,
        &[&["memory", "list", "--all", "--json"], args].concat(),
    );
    let memories = list["memories"].as_array().unwrap();
    let contents = memories.iter().rev();
    contents
        .map(|memory| memory["content"].as_str().unwrap().to_owned())
        .collect()
}

/// Runs a test without a gateway, and with one.
pub(crate) fn either_way(test: impl Fn(&Place)) {
    test(&Place::new());
    let place = Place::new();
    let _gateway = Gateway::start(&place, &[]);
    test(&place);
}

#[test]
fn stored_memories_are_found_and_shown() {
    either_way(|place| {
        let tea = store(
            place,
            &[
                "Ada",
                "prefers",
                "tea",
                "--namespace",
                "home",
                "--user",
                "ada",
                "--type",
                "procedural",
                "--importance",
                "0.9",
                "--from",
                "2026-01-02",
                "--entity",
                "Ada",
                "--entity",
                "green tea",
                "--metadata",
                r#"{"by": "mail", "n": 1}"#,
            ],
        );
        store(place, &["The office is in Berlin"]);
        let found = answer(
            place,
            &["memory", "recall", "what tea does Ada prefer", "--json"],
        );
        let first = &found["memories"][0];
        assert_eq!(first["id"], json!(tea));
        assert!(first["score"].as_f64().unwrap() > 0.0, "{found}");
        let done = place.run(&["memory", "recall", "tea", "--mode", "text", "-n", "1"]);
        let mut lines = done.out.lines();
        let heading = lines.next().unwrap();
        assert!(heading.contains(&format!("  {tea}  20")), "{heading}");
        assert!(heading.contains("keyword "), "{heading}");
        assert!(
            heading.ends_with("; namespace home, user ada; valid from 2026-01-02"),
            "{heading}"
        );
        assert_eq!(lines.next(), Some("      Ada prefers tea"));
        assert_eq!(lines.next(), None);

        let shown = answer(place, &["memory", "show", &tea, "--json"]);
        for (member, expected) in [
            ("content", json!("Ada prefers tea")),
            ("memory_type", json!("procedural")),
            ("importance", json!(0.9)),
            ("namespace", json!("home")),
            ("user_id", json!("ada")),
            ("valid_from", json!("2026-01-02T00:00:00Z")),
            ("metadata", json!({"by": "mail", "n": 1})),
            ("version", json!(1)),
        ] {
            assert_eq!(shown[member], expected, "{member}");
        }
        // An ID prefix is enough.
        let done = place.run(&["memory", "show", &tea[..tea.len() - 3], "--history"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        assert!(
            done.out.starts_with("Ada prefers tea\n\nID           "),
            "{}",
            done.out
        );
        for line in [
            "Scope        namespace home, user ada\n",
            "Valid        from 2026-01-02\n",
            "green tea",
            "\nversion 1, known since 20",
        ] {
            assert!(done.out.contains(line), "{line}: {}", done.out);
        }
    });
}

#[test]
fn lists_have_pages_and_scopes() {
    either_way(|place| {
        place.check(&["memory", "list"], 0, "", "there are no memories\n");
        store(place, &["one", "--namespace", "a"]);
        let two = store(
            place,
            &["two\nlines", "--namespace", "b", "--type", "episodic"],
        );
        store(
            place,
            &["three", "--namespace", "a", "--until", "2020-01-01"],
        );
        assert_eq!(contents(place, &[]), ["one", "two\nlines"]);
        assert_eq!(contents(place, &["--include-invalid"]).len(), 3);
        assert_eq!(contents(place, &["--namespace", "a"]), ["one"]);
        assert_eq!(contents(place, &["--as-of", "2019-05-05"]).len(), 3);
        assert_eq!(contents(place, &["--type", "episodic"]), ["two\nlines"]);
        assert_eq!(contents(place, &["--user", "nobody"]), [""; 0]);
        let done = place.run(&["memory", "list", "-n", "1"]);
        let mut lines = done.out.lines();
        let about = lines.next().unwrap();
        assert!(
            about.starts_with(&two) && about.ends_with("episodic; namespace b"),
            "{about}"
        );
        assert_eq!(lines.next(), Some("      two\\nlines"));
        assert_eq!(
            done.err,
            "1 of 2 memories\nhint: use --offset 1 for the next page, or --all to show all memories\n"
        );
        let page = answer(place, &["memory", "list", "--offset", "1", "--json"]);
        assert_eq!((&page["count"], &page["total"]), (&json!(1), &json!(2)));
        assert_eq!(page["memories"][0]["content"], json!("one"));
    });
}

#[test]
fn id_prefix_selects_one_memory() {
    let place = Place::new();
    let lines = [
        r#"{"type":"memory","id":"one-alpha","content":"Ada drinks tea"}"#,
        r#"{"type":"memory","id":"one-beta","content":"Bob drinks coffee"}"#,
    ];
    let file = place.write("two.jsonl", &lines.join("\n"));
    let done = place.run(&["memory", "import", file.to_str().unwrap()]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let done = place.run(&["memory", "show", "one"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(
        done.err
            .starts_with("error: the IDs of 2 memories begin with \"one\":\n")
            && done.err.contains("one-beta"),
        "{done:?}"
    );
    let done = place.run(&["memory", "show", "one-b"]);
    assert!(done.out.starts_with("Bob drinks coffee\n"), "{done:?}");
    // The user has not seen which memory it is.
    let done = place.run(&["memory", "forget", "one-b", "--yes"]);
    assert_eq!(done.code, Some(2), "{done:?}");
    let done = place.run(&["memory", "forget", "one-beta", "--yes"]);
    assert_eq!(done.code, Some(0), "{done:?}");
}

#[test]
fn list_truncates_long_memories() {
    let place = Place::new();
    let long = "word ".repeat(20_000);
    let done = place.run_with_input(&["memory", "store", "-"], &long);
    assert_eq!(done.code, Some(0), "{done:?}");
    let done = place.run(&["memory", "list"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.ends_with("…\n"), "{}", done.out.len());
    assert!(done.out.len() < 1_000, "{}", done.out.len());
}

#[test]
fn memory_is_disabled_in_its_own_setting() {
    let place = Place::new();
    let done = place.run(&["disable", "memory"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(
        done.err.contains("\"memory\": {\"enabled\": false}"),
        "{done:?}"
    );
    let done = place.run(&["add", "memory", "--", "true"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.err.contains("built-in memory"), "{done:?}");
    assert_eq!(place.run(&["disable", "memory"]).code, Some(0));
}

#[test]
fn standard_input_is_remembered() {
    let place = Place::new();
    let done = place.run_with_input(&["memory", "store", "-"], "first line\nsecond line\n\n");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(contents(&place, &[]), ["first line\nsecond line"]);
    let done = place.run_with_input(&["memory", "store", "-"], "\n");
    assert_eq!(done.code, Some(2), "{done:?}");
}

#[test]
fn similar_memory_is_reported() {
    let place = Place::new();
    let _gateway = Gateway::start(&place, &[]);
    let first = store(
        &place,
        &["The deployment of the website runs every Tuesday evening"],
    );
    // The index is ready once a search has found something.
    answer(&place, &["memory", "recall", "deployment", "--json"]);
    let again = [
        "memory",
        "store",
        "The deployment of the website runs every Tuesday evening!",
    ];
    let done = place.run(&again);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(
        done.err.starts_with(&format!(
            "warning: {first} is a near duplicate (similarity "
        )),
        "{done:?}"
    );
}

#[test]
fn empty_search_is_reported() {
    either_way(|place| {
        let hint = "hint: use other words, or omit the scope; `switchboard memory list` lists the memories\n";
        let err = format!("error: no memory matches the query\n{hint}");
        place.check(&["memory", "recall", "anything"], 1, "", &err);
        let done = place.run(&["memory", "recall", "anything", "--json"]);
        assert_eq!(done.code, Some(1));
        let found: Value = serde_json::from_str(&done.out).unwrap();
        assert_eq!(found["memories"], json!([]));
    });
}

#[test]
fn wrong_input_is_explained() {
    either_way(|place| {
        let missing = "error: there is no memory `nobody`\nhint: `switchboard memory list` and `switchboard memory recall` show the IDs\n";
        place.check(&["memory", "show", "nobody"], 1, "", missing);
        place.check(&["memory", "forget", "nobody", "--yes"], 1, "", missing);
        for (args, words) in [
            (&["store", ""][..], "the text to remember is empty"),
            (
                &["store", "a", "--metadata", "[1]"],
                "--metadata is not a JSON object",
            ),
            (
                &["store", "a", "--from", "yesterday"],
                "invalid value 'yesterday' for '--from <TIME>': expected a time such as 2026-07-28",
            ),
            (&["store", "a", "--importance", "2"], "importance"),
            (
                &[
                    "store",
                    "a",
                    "--from",
                    "2026-02-01",
                    "--until",
                    "2026-01-01",
                ],
                "valid_until is before valid_from",
            ),
            (&["store"], "missing argument"),
            (&["store", "a", "--type", "odd"], "invalid value 'odd'"),
            (&["recall", " "], "the query is empty"),
            (
                &["recall", "a", "--as-of", "then"],
                "invalid value 'then' for '--as-of <TIME>'",
            ),
            (&["recall", "a", "--limit", "0"], "invalid value '0'"),
            (&["list", "--all", "--limit", "3"], "cannot be used with"),
            (&["forget"], "missing argument"),
            (&["forget", "a", "--all"], "cannot be used with"),
            (&["repair", "--yes"], "--discard"),
        ] {
            let done = place.run(&[&["memory"], args].concat());
            assert_eq!(done.code, Some(2), "{args:?}: {done:?}");
            assert!(done.err.contains(words), "{args:?}: {}", done.err);
            assert_eq!(done.out, "");
        }
        assert_eq!(contents(place, &[]), [""; 0]);
    });
}

#[test]
fn forgetting_asks_first() {
    either_way(|place| {
        let first = store(place, &["one \u{1b}[2J"]);
        let second = store(place, &["two"]);
        let nobody = "error: nothing was deleted: cannot ask for confirmation, because standard input is not a terminal\nhint: use --yes to skip the confirmation\n";
        place.check(&["memory", "forget", &first], 2, "", nobody);
        place.check(&["memory", "forget", "--all"], 2, "", nobody);
        let (code, seen) = terminal::run(place, &["memory", "forget", &first], "n\n", &[]);
        assert_eq!(code, Some(1), "{seen}");
        assert!(seen.contains("one ⟨U+001B⟩[2J"), "{seen}");
        assert!(
            seen.contains("Delete 1 memory? This cannot be undone. [y/N]"),
            "{seen}"
        );
        assert_eq!(contents(place, &[]).len(), 2);
        let (code, seen) = terminal::run(place, &["memory", "forget", &first], "y\n", &[]);
        assert_eq!(code, Some(0), "{seen}");
        assert_eq!(contents(place, &[]), ["two"]);
        // With a wrong ID, nothing is deleted.
        let done = place.run(&["memory", "forget", &second, "nobody", "--yes"]);
        assert_eq!(done.code, Some(1), "{done:?}");
        assert_eq!(contents(place, &[]), ["two"]);
        place.check(
            &["memory", "forget", &second, &second, "--yes"],
            0,
            "",
            "deleted 1 memory\n",
        );
        assert_eq!(contents(place, &[]), [""; 0]);
    });
}

#[test]
fn everything_is_deleted_if_the_user_agrees() {
    either_way(|place| {
        store(place, &["one", "--namespace", "a"]);
        store(place, &["two", "--user", "b"]);
        let forget = ["memory", "forget", "--all"];
        let (code, seen) = terminal::run(place, &forget, "\n", &[]);
        assert_eq!(code, Some(1), "{seen}");
        assert!(
            seen.contains("Delete all 2 memories, in every scope?"),
            "{seen}"
        );
        assert_eq!(contents(place, &[]).len(), 2);
        let (code, seen) = terminal::run(place, &forget, "yes\n", &[]);
        assert_eq!(code, Some(0), "{seen}");
        assert_eq!(contents(place, &[]), [""; 0]);
        place.check(
            &["memory", "forget", "--all", "--yes"],
            0,
            "",
            "there are no memories\n",
        );
    });
}

#[test]
fn statistics_count_memories() {
    either_way(|place| {
        store(place, &["Ada likes tea", "--entity", "Ada"]);
        let stats = answer(place, &["memory", "stats", "--json"]);
        assert_eq!(stats["memories"], json!(1));
        assert_eq!(stats["parts"]["store"]["state"], json!("ready"), "{stats}");
        let done = place.run(&["memory", "stats"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        assert!(
            done.out.starts_with("Memories   1\nEntities   "),
            "{}",
            done.out
        );
        assert!(done.out.contains("\nStore      ready\n"), "{}", done.out);
    });
}

#[test]
fn unavailable_memory_is_explained() {
    for (config, error, hint) in [
        (
            r#"{"memory": {"enabled": false}}"#,
            "error: the memory is disabled in DIR/home/switchboard.json\n",
            "hint: set `enabled` of `memory` to true there, or remove it\n",
        ),
        (
            r#"{"mcpServers": {"memory": {"command": "true"}}}"#,
            "error: the server `memory` in DIR/home/switchboard.json replaces the built-in memory\n",
            "hint: rename that server in `mcpServers`, or use it with `switchboard call memory:TOOL`\n",
        ),
    ] {
        either_way(|place| {
            // A running gateway reads the file by itself.
            place.write_config(config);
            if place.run(&["status"]).code == Some(0) {
                switchboard_test_support::until("the configuration is taken up", || {
                    let servers = answer(place, &["list", "--json"]);
                    let servers = servers["servers"].as_array().unwrap();
                    let memory = servers.iter().find(|server| server["name"] == "memory");
                    memory.is_none_or(|memory| memory["kind"] != "built-in")
                });
            }
            for command in [&["store", "a"][..], &["list"], &["stats"], &["serve"]] {
                let command = [&["memory"], command].concat();
                place.check(&command, 1, "", &format!("{error}{hint}"));
            }
        });
    }
}

#[test]
fn memories_do_not_take_over_the_terminal() {
    let place = Place::new();
    let id = store(
        &place,
        &["\u{1b}]0;owned\u{7} \u{202e}text", "--namespace", "\u{9b}n"],
    );
    for args in [&["list"][..], &["recall", "text"], &["show", &id]] {
        let (code, seen) = terminal::run(&place, &[&["memory"], args].concat(), "", &[]);
        assert_eq!(code, Some(0), "{seen:?}");
        assert!(
            seen.contains("⟨U+001B⟩]0;owned⟨U+0007⟩ ⟨U+202E⟩text"),
            "{seen:?}"
        );
        let is_bad = |c: char| c.is_control() && c != '\r' && c != '\n';
        assert!(
            !seen.contains(is_bad) && !seen.contains('\u{202e}'),
            "{seen:?}"
        );
    }
    let shown = place.run(&["memory", "show", &id, "--json"]);
    assert!(
        shown.out.contains(r"\u001b]0;owned\u0007 \u202etext"),
        "{}",
        shown.out
    );
}
