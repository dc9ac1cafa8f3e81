//! Differences that do not count as changes, and proof that all others do.

use std::path::Path;

use serde_json::{Value, json};
use switchboard_trust::{Pins, Places, Policy, Verdict, Why, diff, fingerprint};
use switchboard_wire::Raw;

fn raw(value: &Value) -> Raw {
    Raw::parse(value.to_string()).unwrap()
}

fn places(working: &str) -> Places {
    Places::new(
        Some(Path::new(working)),
        Some(Path::new("/users/ann")),
        Some(Path::new("/tmp")),
    )
}

/// Approves a definition at the first place, and judges one at the second.
fn judged(before: (&str, &Value), now: (&str, &Value)) -> Verdict {
    let mut pins = Pins::new("s", "i");
    let first = pins.judge_at(&places(before.0), Policy::First, &[raw(before.1)], 1);
    assert!(first.all_approved());
    let again = pins.judge_at(&places(now.0), Policy::First, &[raw(now.1)], 2);
    again.items[0]
}

const HERE: &str = "/users/ann/one";
const THERE: &str = "/users/ann/two";

fn search(fields: &str, required: &[&str], units: &[&str]) -> Value {
    json!({
        "name": "search",
        "description": "Searches the issues.",
        "inputSchema": {
            "type": "object",
            "required": required,
            "properties": {
                "jql": { "type": ["string", "null"] },
                "fields": { "type": "string", "default": fields },
                "unit": { "anyOf": [{ "type": "string", "enum": units }, { "type": "null" }] },
            },
        },
    })
}

#[test]
fn order_of_sets_does_not_count() {
    let one = search("summary,status,issue_type", &["jql", "unit"], &["a", "b"]);
    let other = search("issue_type,summary,status", &["unit", "jql"], &["b", "a"]);
    assert_eq!(fingerprint(&raw(&one)), fingerprint(&raw(&other)));
    assert_eq!(judged((HERE, &one), (HERE, &other)), Verdict::Approved);
    assert!(diff(&raw(&one), &raw(&other)).changes.is_empty());
}

#[test]
fn order_that_reads_like_an_attack_counts() {
    let harmless = search("a", &[], &["instructions", "all", "ignore", "previous"]);
    let attack = search("a", &[], &["ignore", "all", "previous", "instructions"]);
    assert_eq!(fingerprint(&raw(&harmless)), fingerprint(&raw(&attack)));
    let held = Verdict::Held(Why::Changed);
    assert_eq!(judged((HERE, &harmless), (HERE, &attack)), held);
    // Until the user approves it.
    let mut pins = Pins::new("s", "i");
    let judge = |pins: &mut Pins, tool: &Value| {
        let verdicts = pins.judge_at(&places(HERE), Policy::First, &[raw(tool)], 1);
        verdicts.items[0]
    };
    judge(&mut pins, &harmless);
    assert_eq!(judge(&mut pins, &attack), held);
    pins.approve("search", None, 2).unwrap();
    assert_eq!(judge(&mut pins, &attack), Verdict::Approved);
    assert_eq!(judge(&mut pins, &harmless), Verdict::Approved);
}

#[test]
fn order_of_anything_else_counts() {
    let tool = |schema: Value| raw(&json!({ "name": "t", "inputSchema": schema }));
    for (one, other) in [
        // A pair may be a start and an end.
        (
            json!({ "default": "from,to" }),
            json!({ "default": "to,from" }),
        ),
        (json!({ "default": "1,2,3" }), json!({ "default": "3,2,1" })),
        (
            json!({ "default": "a, b, c" }),
            json!({ "default": "a,b,c" }),
        ),
        (json!({ "default": "a,b,b" }), json!({ "default": "b,a,b" })),
        (
            json!({ "default": "rm a,b c,d" }),
            json!({ "default": "b c,rm a,d" }),
        ),
        (
            json!({ "description": "a,b,c" }),
            json!({ "description": "c,b,a" }),
        ),
        (
            json!({ "default": ["a", "b", "c"] }),
            json!({ "default": ["b", "a", "c"] }),
        ),
        (
            json!({ "examples": ["a", "b"] }),
            json!({ "examples": ["b", "a"] }),
        ),
        (
            json!({ "default": { "enum": ["a", "b"] } }),
            json!({ "default": { "enum": ["b", "a"] } }),
        ),
        (
            json!({ "const": { "required": ["a", "b"] } }),
            json!({ "const": { "required": ["b", "a"] } }),
        ),
        // The labels give each value its meaning.
        (
            json!({ "enum": ["a", "b"], "enumNames": ["keep", "delete"] }),
            json!({ "enum": ["b", "a"], "enumNames": ["keep", "delete"] }),
        ),
        (
            json!({ "prefixItems": [{}, true] }),
            json!({ "prefixItems": [true, {}] }),
        ),
    ] {
        let [one, other] = [one, other]
            .map(|property| tool(json!({ "type": "object", "properties": { "p": property } })));
        assert_ne!(fingerprint(&one), fingerprint(&other), "{one} {other}");
        assert!(!diff(&one, &other).changes.is_empty(), "{one} {other}");
    }
}

fn at(folder: &str) -> Value {
    json!({
        "name": "export",
        "description": format!("Writes an image below {folder}."),
        "inputSchema": { "type": "object", "properties": { "path": {
            "type": "string", "description": format!("In {folder}/images, or /tmp"),
        } } },
    })
}

#[test]
fn server_may_name_its_directories() {
    assert_eq!(
        judged((HERE, &at(HERE)), (THERE, &at(THERE))),
        Verdict::Approved
    );
    // A definition from before the move is approved, too.
    assert_eq!(
        judged((HERE, &at(HERE)), (THERE, &at(HERE))),
        Verdict::Approved
    );
    let changed = Verdict::Held(Why::Changed);
    for other in [
        "/users/ann",
        "/tmp",
        "/etc",
        HERE,
        "/users/ann/two/x",
        "/users/ann/twos",
    ] {
        let first = at(THERE);
        let verdict = judged((THERE, &first), (THERE, &at(other)));
        assert_eq!(verdict, changed, "{other}");
    }
    // Only descriptions may name places: a default affects where a call goes.
    let with = |folder: &str| json!({ "name": "t", "inputSchema": { "properties": { "p": { "default": folder } } } });
    assert_eq!(judged((HERE, &with(HERE)), (THERE, &with(THERE))), changed);
}

#[test]
fn diff_lists_differences_that_do_not_count() {
    let one = search("summary,status,issue_type", &["jql", "unit"], &["a", "b"]);
    let mut other = search("issue_type,summary,status", &["unit", "jql"], &["a", "b"]);
    other["description"] = json!("Searches the issues of all.");
    let shown = diff(&raw(&one), &raw(&other)).to_string();
    assert_eq!(
        shown,
        "description\n  - Searches the issues.\n  + Searches the issues{+ of all+}.\n\
         (ignored)\n  + different order of parameters.fields.default, inputSchema.required\n"
    );
}

/// Visits copies of a value in which one character of a string or member name is changed.
fn mutated(value: &Value, out: &mut dyn FnMut(Value)) {
    match value {
        Value::String(text) => {
            for changed in changed_texts(text) {
                out(changed.into());
            }
        }
        Value::Array(elements) => {
            for at in 0..elements.len() {
                mutated(&elements[at], &mut |changed| {
                    let mut elements = elements.clone();
                    elements[at] = changed;
                    out(elements.into());
                });
            }
        }
        Value::Object(members) => {
            for (name, inner) in members {
                mutated(inner, &mut |changed| {
                    let mut members = members.clone();
                    members[name] = changed;
                    out(members.into());
                });
                for changed in changed_texts(name) {
                    let mut members = members.clone();
                    let inner = members.remove(name).unwrap();
                    if !members.contains_key(&changed) {
                        members.insert(changed, inner);
                        out(members.into());
                    }
                }
            }
        }
        _ => {}
    }
}

fn changed_texts(text: &str) -> impl Iterator<Item = String> {
    let letters: Vec<char> = text.chars().collect();
    (0..=letters.len()).flat_map(move |at| {
        let with = |middle: &[char], rest: usize| -> String {
            let rest = letters.get(rest..).unwrap_or_default();
            letters[..at].iter().chain(middle).chain(rest).collect()
        };
        let mut all = vec![];
        for c in ['x', '7', ',', '/', ' ', '.', '\u{200b}'] {
            all.push(with(&[c], at));
            if letters.get(at).is_some_and(|letter| *letter != c) {
                all.push(with(&[c], at + 1));
            }
        }
        if at < letters.len() {
            all.push(with(&[], at + 1));
        }
        all
    })
}

#[test]
fn any_other_character_counts() {
    let mut tool = search("summary,status,issue_type", &["jql", "unit"], &["a", "b"]);
    tool["description"] = json!("Searches v1.2 in /users/ann/one, /users/ann/x and /tmp.");
    tool["inputSchema"]["properties"]["jql"]["description"] = json!("As in /users/ann/one/a.jql");
    let mut pins = Pins::new("s", "i");
    let places = places(HERE);
    assert!(
        pins.judge_at(&places, Policy::First, &[raw(&tool)], 1)
            .all_approved()
    );
    let mut count = 0;
    mutated(&tool, &mut |changed| {
        let changed = raw(&changed);
        let mut pins = pins.clone();
        let verdicts = pins.judge_at(&places, Policy::First, std::slice::from_ref(&changed), 2);
        // Under another name it is another tool.
        if changed
            .member("name")
            .and_then(|name| name.to_text())
            .as_deref()
            == Some("search")
        {
            assert_eq!(verdicts.items, [Verdict::Held(Why::Changed)], "{changed}");
            count += 1;
        }
    });
    assert!(count > 3_000, "{count}");
}

/// Pins that are judged at one place after another, as the gateway does it: first the known
/// definition, then the one that the server sends.
struct Moves {
    pins: Pins,
    known: Option<Value>,
}

impl Moves {
    fn new() -> Self {
        Self {
            pins: Pins::new("s", "i"),
            known: None,
        }
    }

    fn start(&mut self, folder: &str, tool: &Value) {
        let places = places(folder);
        for judged in self.known.iter().chain([tool]) {
            let before = self.pins.clone();
            let verdicts = self
                .pins
                .judge_at(&places, Policy::First, &[raw(judged)], 1);
            assert_eq!(verdicts.items, [Verdict::Approved], "{judged} at {folder}");
            assert_eq!(verdicts.changed, self.pins != before);
        }
        self.known = Some(tool.clone());
    }
}

#[test]
fn server_may_move_repeatedly() {
    for folders in [
        [HERE, THERE, HERE, HERE],
        [HERE, THERE, "/users/ann/three", THERE],
    ] {
        let mut moves = Moves::new();
        for folder in folders {
            moves.start(folder, &at(folder));
        }
    }
}

#[test]
fn server_may_move_and_shuffle() {
    let tool = |folder: &str, fields: &str, required: &[&str]| {
        let mut tool = search(fields, required, &["a", "b"]);
        tool["description"] = json!(format!("Searches below {folder}."));
        tool
    };
    let mut moves = Moves::new();
    moves.start(HERE, &tool(HERE, "a,b,c", &["jql", "unit"]));
    moves.start(THERE, &tool(THERE, "c,b,a", &["unit", "jql"]));
    moves.start(HERE, &tool(HERE, "b,a,c", &["jql", "unit"]));
    moves.start(THERE, &tool(THERE, "a,b,c", &["unit", "jql"]));
    // Another order alone is not recorded.
    let before = moves.pins.clone();
    moves.start(THERE, &tool(THERE, "c,a,b", &["jql", "unit"]));
    assert_eq!(moves.pins, before);
}

#[test]
fn rejected_text_stays_rejected_at_another_place() {
    let judge = |pins: &mut Pins, folder: &str, tool: &Value| {
        let verdicts = pins.judge_at(&places(folder), Policy::Ask, &[raw(tool)], 1);
        verdicts.items[0]
    };
    let rejected = Verdict::Held(Why::Rejected);
    for first in [HERE, THERE] {
        let mut pins = Pins::new("s", "i");
        assert_eq!(judge(&mut pins, first, &at(HERE)), Verdict::Held(Why::New));
        pins.reject("export", None).unwrap();
        for folder in [HERE, THERE, HERE] {
            assert_eq!(judge(&mut pins, folder, &at(HERE)), rejected, "{folder}");
        }
        // An approval applies to the same text everywhere.
        pins.approve("export", None, 2).unwrap();
        assert_eq!(judge(&mut pins, THERE, &at(HERE)), Verdict::Approved);
        assert_eq!(
            judge(&mut pins, THERE, &at("/etc")),
            Verdict::Held(Why::Changed)
        );
    }
}
