//! The memory: empty, filled, changed and deleted.

use switchboard_test_support::until;

use super::{golden::Book, running::speak, stage::Stage};

pub(super) const FILES: &[&str] = &["memory"];

super::at_both_widths!();

const CONFIG: &str = r#"{"listen": "127.0.0.1:0"}"#;
const UNKNOWN: &str = "019a0c5d3e21-5f0c1b2a3d4e5f60";

fn record(book: &mut Book) {
    book.scene("no gateway");
    let stage = Stage::new(book.columns);
    stage.write_config(CONFIG);
    wrong(book, &stage);
    empty(book, &stage);
    book.scene("a gateway runs");
    let stage = Stage::new(book.columns);
    stage.write_config(CONFIG);
    let _gateway = stage.gateway();
    settle(&stage);
    book.run("memory", &stage, &[&["memory", "stats"]]);
    filled(book, &stage);
    files(book, &stage);
    forgotten(book, &stage);
}

fn wrong(book: &mut Book, stage: &Stage) {
    book.run(
        "memory",
        stage,
        &[
            &["memory"],
            &["memory", "store"],
            &["memory", "recall"],
            &["memory", "show"],
            &["memory", "forget"],
            &["memory", "import"],
            &["memory", "list", "--limit", "many"],
            &["memory", "store", "x", "--importance", "9"],
            &["memory", "store", "x", "--from", "someday"],
            &["memory", "remember", "x"],
        ],
    );
}

fn empty(book: &mut Book, stage: &Stage) {
    book.run(
        "memory",
        stage,
        &[
            &["memory", "list"],
            &["memory", "recall", "anything"],
            &["memory", "show", UNKNOWN],
            &["memory", "forget", UNKNOWN, "--yes"],
            &["memory", "forget", "--all", "--yes"],
            &["memory", "export"],
            &["memory", "import", "nothing.jsonl"],
            &["memory", "repair"],
        ],
    );
    speak(book, "memory", stage, &["memory", "serve"]);
}

/// Waits until all memories can be found.
fn settle(stage: &Stage) {
    until("the memory is ready", || {
        let parts = stage.json(&["memory", "stats", "--json"])["parts"].take();
        let is_ready = |part: &str| parts[part]["state"] == "ready";
        is_ready("index") && is_ready("embeddings") && parts["embeddings"]["waiting"] == 0
    });
}

fn filled(book: &mut Book, stage: &Stage) {
    book.run(
        "memory",
        stage,
        &[
            &["memory", "store", "Ada prefers green tea", "--user", "ada"],
            &["memory", "store", "Ada prefers green tea.", "--user", "ada"],
            &[
                "memory", "store",
                "The quarterly export of the data warehouse is made on the second Monday of the quarter, by the team that \
                 has the longest name, and takes about four hours unless the disk is full",
                "--type", "procedural", "--namespace", "warehouse", "--importance", "0.9", "--entity", "data warehouse",
            ],
            &[
                "memory", "store", "The office is in Berlin", "--from", "2026-05-01", "--until", "2026-06-01",
                "--metadata", r#"{"source": "the handbook"}"#,
            ],
        ],
    );
    settle(stage);
    let list = stage.json(&["memory", "list", "--json", "--include-invalid"]);
    let list = list["memories"].as_array().unwrap();
    let id = |content: &str| {
        let found = list
            .iter()
            .find(|one| one["content"].as_str().unwrap().starts_with(content));
        found.unwrap()["id"].as_str().unwrap().to_owned()
    };
    let (long, office) = (id("The quarterly"), id("The office"));
    book.run(
        "memory",
        stage,
        &[
            &["memory", "list"],
            &["memory", "list", "--include-invalid", "--limit", "1"],
            &["memory", "list", "--user", "nobody"],
            &["memory", "recall", "what", "does", "Ada", "drink"],
            &[
                "memory",
                "recall",
                "when is the export made",
                "--limit",
                "1",
            ],
            &["memory", "recall", "zzyzx", "--mode", "text"],
            &["memory", "show", &long],
            &["memory", "show", &office, "--history"],
            &["memory", "show", "nonsense"],
            &["memory", "stats"],
        ],
    );
}

fn files(book: &mut Book, stage: &Stage) {
    stage
        .place
        .write("user/wrong.jsonl", "{\"kind\": \"memory\"}\nnonsense\n");
    book.run(
        "memory",
        stage,
        &[
            &["memory", "export", "--format", "markdown"],
            &["memory", "export", "all.jsonl"],
            &["memory", "export", "all.jsonl"],
            &["memory", "import", "all.jsonl", "--dry-run"],
            &["memory", "import", "all.jsonl"],
            &["memory", "import", "wrong.jsonl"],
            &["memory", "repair"],
        ],
    );
}

fn forgotten(book: &mut Book, stage: &Stage) {
    let list = stage.json(&["memory", "list", "--json"]);
    let id = list["memories"][0]["id"].as_str().unwrap();
    let forget = ["memory", "forget", id];
    book.converse("memory", stage, &forget, &[("[y/N] ", "n\n")]);
    book.converse("memory", stage, &forget, &[("[y/N] ", "y\n")]);
    let all = ["memory", "forget", "--all"];
    book.converse("memory", stage, &all, &[("[y/N] ", "y\n")]);
    book.run("memory", stage, &[&["memory", "list"]]);
}
