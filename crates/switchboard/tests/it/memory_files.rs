//! `switchboard memory export` and `import`: memories, exported and imported again.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::{Value, json};

use crate::{
    memory::{contents, either_way, store},
    support::{Place, json as answer},
};

#[test]
fn export_is_written_whole_and_private() {
    either_way(|place| {
        store(place, &["Ada likes tea", "--namespace", "a"]);
        store(place, &["Bob likes coffee", "--namespace", "b"]);
        let file = place.home().join("out.jsonl");
        let path = file.to_str().unwrap();
        let done = place.run(&["memory", "export", path]);
        assert_eq!(done.code, Some(0), "{done:?}");
        let text = fs::read_to_string(&file).unwrap();
        let memories = text
            .lines()
            .filter(|line| line.contains(r#""type":"memory""#));
        assert_eq!(memories.count(), 2, "{text}");
        assert_eq!(
            done.err,
            format!(
                "wrote {} entries to DIR/home/out.jsonl\n",
                text.lines().count()
            )
        );
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
        place.check(
            &["memory", "export", path],
            1,
            "",
            "error: DIR/home/out.jsonl already exists\nhint: choose another name, or use --force to replace it\n",
        );
        let done = place.run(&["memory", "export", path, "--force", "--namespace", "b"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains("coffee") && !text.contains("tea"), "{text}");
        for args in [&["memory", "export"][..], &["memory", "export", "-"]] {
            assert!(place.run(args).out.contains("Ada likes tea"));
        }
        let done = place.run(&["memory", "export", "--format", "markdown"]);
        assert!(done.out.contains("Ada likes tea"), "{}", done.out);
        let done = place.run(&["memory", "export", "/nowhere/at/all"]);
        assert_eq!(done.code, Some(1), "{done:?}");
        let left: Vec<_> = fs::read_dir(place.home())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.contains(".part"))
            .collect();
        assert_eq!(left, [""; 0]);
    });
}

/// The lines of an export, without the IDs of entities, which differ elsewhere: entities are identified by
/// name.
fn lasting(export: &str) -> Vec<Value> {
    let lines = export.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        if line["type"] == "entity" {
            line.as_object_mut().unwrap().remove("id");
        }
        line
    });
    lines.collect()
}

#[test]
fn export_can_be_imported_elsewhere() {
    either_way(|place| {
        for number in 0..30 {
            let content = format!("Number {number} \"quoted\" ünd 🙂");
            let namespace = format!("n{}", number % 3);
            store(
                place,
                &[&content, "--namespace", &namespace, "--entity", "Numbers"],
            );
        }
        let exported = place.run(&["memory", "export", "-"]).out;
        let other = Place::new();
        let import = ["memory", "import", "-", "--json"];
        let trial = other.run_with_input(&["memory", "import", "-", "--dry-run"], &exported);
        assert_eq!(trial.code, Some(0), "{trial:?}");
        assert!(
            trial.err.starts_with("would import 30 memories, "),
            "{}",
            trial.err
        );
        assert_eq!(contents(&other, &[]), [""; 0]);
        let done = other.run_with_input(&import, &exported);
        assert_eq!(done.code, Some(0), "{done:?}");
        let counts: Value = serde_json::from_str(&done.out).unwrap();
        assert_eq!(
            (&counts["memories"], &counts["skipped"]),
            (&json!(30), &json!(0))
        );
        let again = other.run(&["memory", "export", "-"]).out;
        assert_eq!(lasting(&again), lasting(&exported));
        // A second import finds all of them stored.
        let done = other.run_with_input(&["memory", "import", "-"], &exported);
        assert!(
            done.err.starts_with("imported 0 memories, "),
            "{}",
            done.err
        );
        assert!(done.err.ends_with("; 30 skipped\n"), "{}", done.err);
        let copy = ["memory", "import", "-", "--on-conflict", "copy"];
        assert_eq!(other.run_with_input(&copy, &exported).code, Some(0));
        assert_eq!(contents(&other, &[]).len(), 60);
    });
}

#[test]
fn histories_survive_an_import_of_many_pages() {
    let place = Place::new();
    let line = |id: usize, content: &str, day: usize| {
        let learned = format!("2026-01-{day:02}T00:00:00Z");
        json!({"type": "memory", "id": format!("m{id}"), "content": content, "learned_at": learned})
            .to_string()
    };
    let mut lines: Vec<String> = (0..1_500).map(|id| line(id, "first", 1)).collect();
    lines.push("{oops".to_owned());
    lines.extend((0..1_500).step_by(2).map(|id| line(id, "second", 2)));
    lines.push(json!({"type": "memory", "content": ""}).to_string());
    let file = place.write("many.jsonl", &lines.join("\n"));
    let done = place.run(&["memory", "import", file.to_str().unwrap()]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.err.contains("warning: line 1501: "), "{}", done.err);
    assert!(
        done.err.contains("warning: line 2252: content is empty"),
        "{}",
        done.err
    );
    assert!(
        done.err.contains("imported 1500 memories, "),
        "{}",
        done.err
    );
    assert!(
        done.err.contains("error: skipped 2 invalid lines\n"),
        "{}",
        done.err
    );
    for (id, content, versions) in [
        ("m0", "second", 2),
        ("m1", "first", 1),
        ("m1498", "second", 2),
    ] {
        let shown = answer(&place, &["memory", "show", id, "--history", "--json"]);
        assert_eq!(shown["content"], json!(content), "{id}");
        assert_eq!(shown["history"].as_array().unwrap().len(), versions, "{id}");
    }
    let exported = place.run(&["memory", "export", "--history"]);
    assert_eq!(exported.out.lines().count(), 2_250);
    let other = Place::new();
    let done = other.run_with_input(&["memory", "import", "-"], &exported.out);
    assert_eq!(done.code, Some(0), "{done:?}");
    let shown = answer(
        &other,
        &[
            "memory",
            "show",
            "m1498",
            "--known-at",
            "2026-01-01T12:00:00Z",
            "--json",
        ],
    );
    assert_eq!(shown["content"], json!("first"));
}

#[test]
fn import_of_another_format_is_refused() {
    let place = Place::new();
    let import = |bytes: &[u8]| {
        let file = place.home().join("given");
        fs::create_dir_all(place.home()).unwrap();
        fs::write(&file, bytes).unwrap();
        place.run(&["memory", "import", file.to_str().unwrap()])
    };
    let zeros = vec![0; 5_000_000];
    for (bytes, words) in [
        (&b"\n\n"[..], "the file contains no memories"),
        (b"{}\n\xff\n", "line 2 of DIR/home/given is not UTF-8 text"),
        (b"# A page\nof Markdown\n", "line 1: "),
        (&zeros, "line 1: "),
    ] {
        let done = import(bytes);
        assert_eq!(done.code, Some(1), "{words}: {done:?}");
        assert!(done.err.contains(words), "{words}: {}", done.err);
    }
    let done = place.run(&["memory", "import", "/nowhere"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.err.contains("/nowhere"), "{}", done.err);
}

#[test]
fn pipe_without_a_writer_is_refused() {
    let place = Place::new();
    let pipe = place.write("pipe", "");
    fs::remove_file(&pipe).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    place.check(
        &["memory", "import", pipe.to_str().unwrap()],
        1,
        "",
        "error: DIR/pipe is not a file\nhint: use `-` to read from standard input\n",
    );
}
