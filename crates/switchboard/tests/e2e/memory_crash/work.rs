//! The work for the memory: many calls at once, each about memories of its own.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
};

use serde_json::{Value, json};
use switchboard_test_support::pipe::Pipe;

use super::{
    Dice,
    ledger::{Doubt, Kept, Ledger},
};

/// Calls in flight.
const AT_ONCE: usize = 16;
/// The approximate number of memories to keep.
const ENOUGH: usize = 250;
/// Memories in an import.
const IMPORTED: u64 = 8;

const NAMES: [&str; 8] = [
    "Amara Lindqvist",
    "Borys",
    "Cecilia Ortega",
    "Dmitri",
    "Project Heron",
    "Fatima",
    "Goran Petrov",
    "Project Osprey",
];
const MATTERS: [&str; 10] = [
    "prefers short meetings in the morning",
    "moved the release to next week",
    "wants the report as a table",
    "found a leak in the cache of the parser",
    "works from home on every second Friday",
    "asked for a copy of the contract",
    "keeps the keys of the laboratory",
    "is allergic to peanuts and cats",
    "writes the tests before the code",
    "has booked the train to the coast",
];

/// A call that was sent.
struct Sent {
    kind: &'static str,
    /// The memories that no other call touches meanwhile.
    about: Vec<String>,
    then: Doubt,
}

/// The next step after a response.
enum Next {
    Preview(String),
    Apply(String, String, Vec<(String, Kept)>),
}

pub(super) struct Work {
    /// A counter for unique words.
    count: u64,
    done: BTreeMap<&'static str, u64>,
    next: Vec<Next>,
    /// Namespaces that no other call uses until their memories have been merged.
    reserved: BTreeSet<String>,
}

impl Work {
    pub(super) fn new() -> Self {
        Self {
            count: 0,
            done: BTreeMap::new(),
            next: Vec::new(),
            reserved: BTreeSet::new(),
        }
    }

    /// Works until the program is gone; calls in flight are in doubt then.
    pub(super) fn until_killed(&mut self, pipe: &mut Pipe, ledger: &mut Ledger, dice: &mut Dice) {
        let mut sent: HashMap<u64, Sent> = HashMap::new();
        let mut busy: BTreeSet<String> = BTreeSet::new();
        self.next.clear();
        self.reserved.clear();
        loop {
            while sent.len() < AT_ONCE {
                let (tool, arguments, what) = self.order(ledger, &busy, dice);
                busy.extend(what.about.iter().cloned());
                let params = json!({ "name": tool, "arguments": arguments });
                let Some(id) = pipe.try_begin("tools/call", params) else {
                    ledger.doubt(what.then);
                    break;
                };
                sent.insert(id.as_u64().unwrap(), what);
            }
            let Some(answer) = pipe.next() else { break };
            let what = answer["id"].as_u64().and_then(|id| sent.remove(&id));
            let Some(what) = what else { continue };
            if answer["error"]["code"] == -32002 {
                // The call took too long, but may have happened. The memories it is about stay untouched.
                ledger.doubt(what.then);
                continue;
            }
            for id in &what.about {
                busy.remove(id);
            }
            *self.done.entry(what.kind).or_default() += 1;
            self.answered(what, &answer, ledger);
        }
        for (_, what) in sent {
            ledger.doubt(what.then);
        }
    }

    fn answered(&mut self, what: Sent, answer: &Value, ledger: &mut Ledger) {
        let result = &answer["result"]["structuredContent"];
        let is_fine = answer.get("error").is_none() && answer["result"]["isError"] != true;
        assert!(is_fine, "{}: {answer}", what.kind);
        match (what.kind, &what.then) {
            ("store", Doubt::Stored(kept)) => {
                let id = result["id"].as_str().unwrap();
                ledger.put(id.to_owned(), kept.clone());
            }
            ("import" | "twins", Doubt::Imported(memories)) => {
                assert_eq!(result["memories"], memories.len(), "{answer}");
                assert_eq!(result["errors"], json!([]), "{answer}");
                if what.kind == "twins" {
                    self.next
                        .push(Next::Preview(memories[0].1.namespace.clone()));
                }
            }
            ("update" | "invalidate", Doubt::Changed(memories)) => {
                assert_eq!(result["version"], memories[0].1.version, "{answer}");
                assert_eq!(result["content"], memories[0].1.content, "{answer}");
            }
            ("preview", _) => self.previewed(&what.about, result, ledger),
            ("apply", Doubt::Changed(memories)) => {
                assert_eq!(result["applied"], true, "{answer}");
                self.reserved.remove(&memories[0].1.namespace);
            }
            _ => {}
        }
        ledger.done(what.then);
    }

    /// The previewed merge is applied next.
    fn previewed(&mut self, about: &[String], result: &Value, ledger: &Ledger) {
        let mut changed = Vec::new();
        for group in result["groups"].as_array().unwrap() {
            for merged in group["merge"].as_array().unwrap() {
                let id = merged["id"].as_str().unwrap();
                assert!(
                    about.iter().any(|one| one == id),
                    "{id} is of another scope"
                );
                let before = ledger.get(id).expect("it is kept");
                let kept = Kept {
                    version: before.version + 1,
                    ended: true,
                    ..before.clone()
                };
                changed.push((id.to_owned(), kept));
            }
        }
        if let (Some((id, _)), Some(plan)) = (changed.first(), result["plan"].as_str()) {
            let namespace = ledger.get(id).expect("it is kept").namespace.clone();
            self.next
                .push(Next::Apply(namespace, plan.to_owned(), changed));
        } else {
            let namespaces = about.iter().filter_map(|id| ledger.get(id));
            for Kept { namespace, .. } in namespaces {
                self.reserved.remove(namespace);
            }
        }
    }

    /// A unique word that is not the stem of another.
    fn token(&mut self) -> String {
        self.count += 1;
        let mut rest = self.count;
        let mut token = "zq".to_owned();
        while rest > 0 {
            token.push(char::from(
                b"bcdfghjklm"[usize::try_from(rest % 10).unwrap()],
            ));
            rest /= 10;
        }
        token.push_str("xk");
        token
    }

    fn fresh(&mut self, namespace: &str, dice: &mut Dice) -> Kept {
        let token = self.token();
        let name = NAMES[dice.pick(NAMES.len())];
        let matter = MATTERS[dice.pick(MATTERS.len())];
        // Every fourth one mentions a person that no other memory mentions.
        let other = match dice.below(4) {
            0 => format!(" with Person{token} Smith"),
            _ => String::new(),
        };
        Kept {
            namespace: namespace.to_owned(),
            content: format!("{name} {matter}{other}, says note {token}."),
            token,
            version: 1,
            ended: false,
        }
    }

    /// The next call.
    fn order(
        &mut self,
        ledger: &Ledger,
        busy: &BTreeSet<String>,
        dice: &mut Dice,
    ) -> (&'static str, Value, Sent) {
        match self.next.pop() {
            Some(Next::Preview(namespace)) => return preview(&namespace, ledger),
            Some(Next::Apply(namespace, plan, changed)) => {
                let arguments = json!({ "namespace": namespace, "similarity": 0.7, "apply": plan });
                let about = changed.iter().map(|(id, _)| id.clone()).collect();
                let then = Doubt::Changed(changed);
                return (
                    "consolidate_memory",
                    arguments,
                    Sent {
                        kind: "apply",
                        about,
                        then,
                    },
                );
            }
            None => {}
        }
        let is_free = |id: &&String| {
            let kept = ledger.get(id).expect("it is kept");
            !busy.contains(*id) && !self.reserved.contains(&kept.namespace)
        };
        let free: Vec<&String> = ledger.ids().into_iter().filter(is_free).collect();
        let namespace = format!("space-{}", dice.below(4));
        let choice = dice.below(100);
        let is_full = ledger.len() > ENOUGH;
        match choice {
            0..25 if is_full && !free.is_empty() => delete(free[dice.pick(free.len())]),
            0..35 => self.store(&namespace, dice),
            35..55 if !free.is_empty() => {
                let id = free[dice.pick(free.len())];
                self.update(id, ledger, dice)
            }
            55..65 if !free.is_empty() => delete(free[dice.pick(free.len())]),
            65..72 if !free.is_empty() => invalidate(free[dice.pick(free.len())], ledger),
            72..80 if !is_full => self.import(&namespace, dice),
            80..86 => self.twins(dice),
            86..90 => {
                let name = format!("Entity {}", self.token());
                let arguments = json!({ "name": name, "entity_type": "thing" });
                let then = Doubt::Entity(name);
                (
                    "create_entity",
                    arguments,
                    Sent {
                        kind: "entity",
                        about: Vec::new(),
                        then,
                    },
                )
            }
            90..93 if ledger.entities().len() > 1 => {
                let names = ledger.entities();
                let mut name = || names[dice.pick(names.len())].clone();
                let (from, to) = (name(), name());
                if from == to {
                    return recall(&from);
                }
                let arguments = json!({ "from": from, "to": to, "relation_type": "knows" });
                let then = Doubt::Relation(from, to);
                (
                    "create_relation",
                    arguments,
                    Sent {
                        kind: "relation",
                        about: Vec::new(),
                        then,
                    },
                )
            }
            _ => recall(NAMES[dice.pick(NAMES.len())]),
        }
    }

    fn store(&mut self, namespace: &str, dice: &mut Dice) -> (&'static str, Value, Sent) {
        let kept = self.fresh(namespace, dice);
        let arguments = json!({ "content": kept.content, "namespace": namespace });
        let then = Doubt::Stored(kept);
        (
            "store_memory",
            arguments,
            Sent {
                kind: "store",
                about: Vec::new(),
                then,
            },
        )
    }

    fn update(
        &mut self,
        id: &str,
        ledger: &Ledger,
        dice: &mut Dice,
    ) -> (&'static str, Value, Sent) {
        let before = ledger.get(id).expect("it is kept");
        let after = Kept {
            version: before.version + 1,
            ended: before.ended,
            ..self.fresh(&before.namespace, dice)
        };
        let arguments = json!({ "id": id, "content": after.content });
        let then = Doubt::Changed(vec![(id.to_owned(), after)]);
        let about = vec![id.to_owned()];
        (
            "update_memory",
            arguments,
            Sent {
                kind: "update",
                about,
                then,
            },
        )
    }

    fn import(&mut self, namespace: &str, dice: &mut Dice) -> (&'static str, Value, Sent) {
        let memories = (0..IMPORTED).map(|_| self.fresh(namespace, dice));
        let memories: Vec<Kept> = memories.collect();
        import("import", memories)
    }

    /// Two memories with nearly the same text, in a scope of their own.
    fn twins(&mut self, dice: &mut Dice) -> (&'static str, Value, Sent) {
        let namespace = format!("twins-{}", self.count);
        let one = self.fresh(&namespace, dice);
        self.reserved.insert(namespace);
        let token = self.token();
        let other = Kept {
            content: format!("{} Also {token}.", one.content),
            token,
            ..one.clone()
        };
        // The token of the first is in both, so it identifies neither.
        let own = self.token();
        let one = Kept {
            content: format!("{} Also {own}.", one.content),
            token: own,
            ..one
        };
        import("twins", vec![one, other])
    }

    pub(super) fn assert_all_kinds_were_done(&self) {
        for kind in [
            "store",
            "update",
            "delete",
            "invalidate",
            "import",
            "preview",
            "apply",
            "entity",
        ] {
            let done = self.done.get(kind).copied().unwrap_or(0);
            assert!(done > 0, "not one {kind} was acknowledged: {self}");
        }
    }
}

fn import(kind: &'static str, memories: Vec<Kept>) -> (&'static str, Value, Sent) {
    let memories = memories
        .into_iter()
        .map(|kept| (format!("import-{}", kept.token), kept));
    let memories: Vec<(String, Kept)> = memories.collect();
    let lines = memories.iter().map(|(id, kept)| {
        json!({ "type": "memory", "id": id, "content": kept.content, "namespace": kept.namespace })
            .to_string()
    });
    let jsonl = lines.collect::<Vec<_>>().join("\n");
    let then = Doubt::Imported(memories);
    (
        "import_memory",
        json!({ "jsonl": jsonl }),
        Sent {
            kind,
            about: Vec::new(),
            then,
        },
    )
}

fn preview(namespace: &str, ledger: &Ledger) -> (&'static str, Value, Sent) {
    let is_of_it = |id: &&&String| {
        ledger
            .get(id)
            .is_some_and(|kept| kept.namespace == namespace)
    };
    let about = ledger
        .ids()
        .iter()
        .filter(is_of_it)
        .map(|id| (*id).clone())
        .collect();
    let arguments = json!({ "namespace": namespace, "similarity": 0.7 });
    let then = Doubt::Nothing;
    (
        "consolidate_memory",
        arguments,
        Sent {
            kind: "preview",
            about,
            then,
        },
    )
}

fn delete(id: &str) -> (&'static str, Value, Sent) {
    let then = Doubt::Deleted(id.to_owned());
    let about = vec![id.to_owned()];
    (
        "delete_memory",
        json!({ "id": id }),
        Sent {
            kind: "delete",
            about,
            then,
        },
    )
}

fn invalidate(id: &str, ledger: &Ledger) -> (&'static str, Value, Sent) {
    let before = ledger.get(id).expect("it is kept");
    let after = Kept {
        version: before.version + 1,
        ended: true,
        ..before.clone()
    };
    let arguments = json!({ "id": id, "reason": "it is over" });
    let then = Doubt::Changed(vec![(id.to_owned(), after)]);
    let about = vec![id.to_owned()];
    (
        "invalidate",
        arguments,
        Sent {
            kind: "invalidate",
            about,
            then,
        },
    )
}

fn recall(words: &str) -> (&'static str, Value, Sent) {
    let then = Doubt::Nothing;
    (
        "recall",
        json!({ "query": words }),
        Sent {
            kind: "recall",
            about: Vec::new(),
            then,
        },
    )
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done: Vec<String> = self
            .done
            .iter()
            .map(|(kind, times)| format!("{times} {kind}"))
            .collect();
        f.write_str(&done.join(", "))
    }
}
