//! Every tool, the resources and the prompt, with every client at every door.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use switchboard_test_support::{Tools, until};

use super::{Agent, At, contents};

use crate::support::{Kind, Place};

const TOOLS: [&str; 17] = [
    "consolidate_memory",
    "create_entity",
    "create_relation",
    "delete_memory",
    "export_memory",
    "get_memory",
    "get_related",
    "get_status",
    "get_valid",
    "import_memory",
    "invalidate",
    "list_memories",
    "recall",
    "reset_all_memory",
    "search_memory",
    "store_memory",
    "update_memory",
];

#[test]
fn typescript_v1() {
    tour(Kind::TypescriptV1, false);
}

#[test]
fn typescript_v2() {
    tour(Kind::TypescriptV2, false);
}

#[test]
fn typescript_v2_in_the_newest_revision() {
    tour(Kind::TypescriptV2, true);
}

#[test]
fn python_v2() {
    tour(Kind::Python, false);
}

#[test]
fn python_v2_in_the_newest_revision() {
    tour(Kind::Python, true);
}

#[test]
fn python_v1() {
    tour(Kind::PythonV1, false);
}

#[track_caller]
fn tour(kind: Kind, modern: bool) {
    let Some(tools) = Tools::peers() else { return };
    let place = Place::remembering(tools);
    for at in At::ALL {
        let answer = json!({ "action": "accept", "content": { "forget": true } });
        let mut agent = Agent::answering(&place, kind, modern, at, &[answer]);
        let listed: BTreeSet<_> = agent.tools().into_iter().map(|(name, _)| name).collect();
        assert!(listed.iter().map(String::as_str).eq(TOOLS), "{listed:?}");
        let mut tour = Tour {
            called: BTreeSet::new(),
            agent,
        };
        tour.memories();
        tour.finding();
        tour.entities();
        tour.transfer();
        tour.merging();
        tour.addresses();
        tour.forgetting();
        assert!(tour.called.iter().copied().eq(TOOLS), "{:?}", tour.called);
        tour.agent.leaves();
    }
}

/// A client that goes through all tools, and the tools that it has called.
struct Tour {
    agent: Agent,
    called: BTreeSet<&'static str>,
}

impl Tour {
    #[track_caller]
    fn gives(&mut self, tool: &'static str, args: Value) -> Value {
        self.called.insert(tool);
        self.agent.gives(tool, args)
    }

    /// One memory from store to delete.
    fn memories(&mut self) {
        let whole = json!({
            "content": "Ada leads the compiler team",
            "namespace": "work", "user_id": "ada", "agent_id": "coder", "run_id": "r-1",
            "memory_type": "episodic", "importance": 0.7,
            "valid_from": "2024-01-01T00:00:00Z", "valid_until": "2124-01-01T00:00:00Z",
            "learned_at": "2024-01-02T03:04:05Z",
            "entities": ["Ada", { "name": "Compiler Team", "entity_type": "team" }],
            "metadata": { "source": "chat", "turns": [1, 2.5, null, { "deep": true }] },
        });
        let stored = self.gives("store_memory", whole.clone());
        let id = stored["id"].clone();
        let got = self.gives("get_memory", json!({ "id": id, "user_id": "ada" }));
        for (name, value) in whole.as_object().unwrap() {
            if name == "entities" {
                let names = got[name].as_array().unwrap();
                for entity in ["Ada", "Compiler Team"] {
                    assert!(names.contains(&json!(entity)), "{got}");
                }
            } else {
                assert_eq!(got[name], *value, "{name}: {got}");
            }
        }
        assert_eq!((&got["id"], &got["version"]), (&id, &json!(1)));
        assert!(got["learned_until"].is_null(), "{got}");

        let change = json!({
            "id": id, "content": "Ada leads the linker team", "importance": 1,
            "memory_type": "semantic", "valid_until": null, "metadata": {},
        });
        let changed = self.gives("update_memory", change);
        assert_eq!(changed["version"], 2, "{changed}");
        assert_eq!(changed["content"], "Ada leads the linker team");
        assert_eq!(changed["importance"].as_f64(), Some(1.0));
        assert_eq!(changed["metadata"], json!({}));
        assert!(changed["valid_until"].is_null(), "{changed}");
        assert_eq!(changed["valid_from"], whole["valid_from"]);

        let other = self
            .agent
            .stores(json!({ "content": "Bob leads it", "user_id": "ada" }));
        let wish =
            json!({ "id": id, "user_id": "ada", "reason": "she left", "superseded_by": other });
        let ended = self.gives("invalidate", wish);
        assert_eq!(ended["reason"], "she left", "{ended}");
        assert_eq!(ended["superseded_by"], other);
        assert!(ended["valid_until"].is_string(), "{ended}");
        let history = self.gives("get_memory", json!({ "id": id, "history": true }));
        let versions = history["history"].as_array().unwrap().iter();
        let versions: Vec<_> = versions.map(|one| one["version"].as_u64()).collect();
        assert_eq!(versions, [Some(1), Some(2), Some(3)], "{history}");

        let wish = json!({ "user_id": "ada", "limit": 1 });
        let listed = self.gives("list_memories", wish.clone());
        assert_eq!(contents(&listed), ["Bob leads it"]);
        assert_eq!((&listed["count"], &listed["total"]), (&json!(1), &json!(1)));
        assert!(listed["next_offset"].is_null(), "{listed}");
        let mut wish = wish;
        wish["include_invalid"] = json!(true);
        let listed = self.gives("list_memories", wish.clone());
        assert_eq!(
            (&listed["total"], &listed["next_offset"]),
            (&json!(2), &json!(1))
        );
        wish["offset"] = json!(1);
        let listed = self.gives("list_memories", wish);
        assert_eq!(listed["count"], 1, "{listed}");
        let valid = self.gives("get_valid", json!({ "user_id": "ada" }));
        assert_eq!(contents(&valid), ["Bob leads it"]);

        let deleted = self.gives("delete_memory", json!({ "id": id }));
        assert_eq!(deleted, json!({ "deleted": true, "id": id }));
        let said = self.agent.refuses("get_memory", json!({ "id": id }));
        assert!(said.contains(id.as_str().unwrap()), "{said}");
    }

    fn finding(&mut self) {
        for content in ["The office is in Utrecht", "Tea is served at four"] {
            self.agent
                .stores(json!({ "content": content, "namespace": "find" }));
        }
        let wish = json!({ "query": "where is the office?", "namespace": "find", "limit": 5 });
        for tool in ["recall", "search_memory"] {
            let found = self.gives(tool, wish.clone());
            assert_eq!(contents(&found)[0], "The office is in Utrecht", "{found}");
            let first = &found["memories"][0];
            let score = first["score"].as_f64().unwrap();
            assert!(score > 0.0 && score <= 1.0, "{found}");
            assert!(first["channels"]["lexical"].is_number(), "{found}");
            let words = first["why"]["words"].as_array().unwrap();
            assert!(words.contains(&json!("office")), "{found}");
        }
        let status = self.gives("get_status", json!({ "scopes": true }));
        assert_eq!(status["status"], "ready", "{status}");
        let scopes = status["scopes"].as_array().unwrap();
        let find = json!({ "namespace": "find", "memories": 2 });
        assert!(scopes.contains(&find), "{status}");
        for part in ["store", "index", "embeddings"] {
            assert!(status["parts"][part]["state"].is_string(), "{status}");
        }
        until("everything can be found by meaning", || {
            let status = self.gives("get_status", json!({}));
            let embeddings = &status["parts"]["embeddings"];
            (embeddings["state"] == "ready" && embeddings["waiting"] == 0).then_some(())
        });
        let mut wish = wish;
        wish["mode"] = json!("vector");
        let found = self.gives("search_memory", wish);
        assert_eq!(found["vectors"], "ready", "{found}");
        assert_eq!(contents(&found)[0], "The office is in Utrecht", "{found}");
        let channels = found["memories"][0]["channels"].as_object().unwrap();
        assert!(channels.keys().eq(["vector"]), "{found}");
    }

    fn entities(&mut self) {
        let mut wish = json!({ "name": "Ada", "entity_type": "person", "namespace": "graph" });
        let made = self.gives("create_entity", wish.clone());
        assert_eq!(
            (&made["name"], &made["created"]),
            (&json!("Ada"), &json!(true))
        );
        wish["description"] = json!("leads");
        let again = self.gives("create_entity", wish);
        assert_eq!(
            (&again["id"], &again["created"]),
            (&made["id"], &json!(false))
        );
        let acme = json!({ "name": "Acme", "namespace": "graph" });
        let acme = self.gives("create_entity", acme);
        let wish = json!({
            "from": "ada", "to": acme["id"], "relation_type": "works at", "weight": 0.5,
            "namespace": "graph",
        });
        let related = self.gives("create_relation", wish);
        assert_eq!(related["created"], true);
        assert_eq!(
            (&related["from"], &related["to"]),
            (&json!("Ada"), &json!("Acme"))
        );
        let content =
            json!({ "content": "Ada moved desks", "entities": ["Ada"], "namespace": "graph" });
        self.agent.stores(content);
        let wish = json!({
            "entity": "Ada", "depth": 3, "direction": "out", "limit": 10, "namespace": "graph",
        });
        let around = self.gives("get_related", wish);
        let entities = around["entities"].as_array().unwrap();
        let names: Vec<_> = entities
            .iter()
            .map(|one| one["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["Ada", "Acme"], "{around}");
        assert_eq!(entities[0]["description"], "leads");
        assert_eq!(entities[1]["distance"], 1);
        let relation = &around["relations"][0];
        assert_eq!(relation["relation_type"], "works at");
        assert_eq!(relation["weight"], 0.5);
        assert_eq!(contents(&around), ["Ada moved desks"]);
        let most = self.gives("get_related", json!({ "namespace": "graph" }));
        assert_eq!(most["entities"][0]["name"], "Ada", "{most}");
    }

    fn transfer(&mut self) {
        let scope = |with: Value| {
            let mut args = json!({ "namespace": "graph" });
            args.as_object_mut()
                .unwrap()
                .extend(with.as_object().unwrap().clone());
            args
        };
        let mut lines = String::new();
        let mut wish = scope(json!({ "limit": 1, "include_history": true }));
        loop {
            let page = self.gives("export_memory", wish.clone());
            lines.push_str(page["data"].as_str().unwrap());
            if page["next_cursor"].is_null() {
                break;
            }
            wish["cursor"] = page["next_cursor"].clone();
        }
        assert_eq!(lines.lines().count(), 4, "{lines}");
        let markdown = scope(json!({ "format": "markdown" }));
        let markdown = self.gives("export_memory", markdown);
        let data = markdown["data"].as_str().unwrap();
        assert!(data.starts_with("- Ada moved desks\n"), "{data}");

        let trial = json!({ "jsonl": lines, "on_conflict": "copy", "dry_run": true });
        let counts = self.gives("import_memory", trial);
        for (name, count) in [("memories", 1), ("entities", 2), ("relations", 1)] {
            assert_eq!(counts[name], count, "{counts}");
        }
        let skipped = self.gives("import_memory", json!({ "jsonl": lines }));
        let counted = (&skipped["memories"], &skipped["skipped"]);
        assert_eq!(counted, (&json!(0), &json!(1)), "{skipped}");
        // The file of the reference server, and invalid lines.
        let reference = concat!(
            r#"{"type":"entity","name":"Bob","entityType":"person","observations":["likes tea"]}"#,
            "\nnothing\n",
            r#"{"type":"relation","from":"Bob","to":"Nobody","relationType":"knows"}"#,
        );
        let imported = self.gives("import_memory", json!({ "jsonl": reference }));
        let counted = (&imported["entities"], &imported["memories"]);
        assert_eq!(counted, (&json!(1), &json!(1)), "{imported}");
        let wrong = imported["errors"].as_array().unwrap().iter();
        let wrong: Vec<_> = wrong.map(|error| error["line"].as_u64()).collect();
        assert_eq!(wrong, [Some(2), Some(3)], "{imported}");
    }

    fn merging(&mut self) {
        let scope = json!({ "namespace": "merge", "similarity": 0.9 });
        let twice = json!({ "content": "The build takes nine minutes", "namespace": "merge" });
        self.agent.stores(twice.clone());
        let second = self.gives("store_memory", twice);
        assert_eq!(
            second["similar"].as_array().map(Vec::len),
            Some(1),
            "{second}"
        );
        let seen = self.gives("consolidate_memory", scope.clone());
        let counted = (&seen["count"], &seen["applied"]);
        assert_eq!(counted, (&json!(1), &json!(false)), "{seen}");
        let mut wish = scope.clone();
        wish["apply"] = json!("plan-of-old");
        let said = self.agent.refuses("consolidate_memory", wish.clone());
        assert!(said.contains("out of date"), "{said}");
        wish["apply"] = seen["plan"].clone();
        let done = self.gives("consolidate_memory", wish);
        assert_eq!(done["applied"], true, "{done}");
        let left = self.gives("list_memories", json!({ "namespace": "merge" }));
        assert_eq!(left["total"], 1, "{left}");
    }

    /// The resources and the prompt.
    fn addresses(&mut self) {
        let agent = &mut self.agent;
        let (name_prefix, prefix) = agent.at.prefixes();
        let id = agent.stores(json!({
            "content": "Ünïcode & spaces: 100% \"fine\"", "namespace": "a b&c=d/é", "importance": 0.9,
        }));
        let listed = agent.does(&json!({ "do": "resources" }));
        let has = |listed: &Value, list: &str, member: &str, wanted: &str| {
            let list = listed[list].as_array().expect("a list");
            assert!(
                list.iter().any(|one| one[member] == wanted),
                "{wanted} in {listed}"
            );
        };
        has(
            &listed,
            "resources",
            "uri",
            &format!("{prefix}memory://digest"),
        );
        let listed = agent.does(&json!({ "do": "templates" }));
        let scoped = "memory://digest{?namespace,user_id,agent_id,run_id}";
        for template in [scoped, "memory://memories/{id}"] {
            has(
                &listed,
                "resourceTemplates",
                "uriTemplate",
                &format!("{prefix}{template}"),
            );
        }
        let listed = agent.does(&json!({ "do": "prompts" }));
        has(
            &listed,
            "prompts",
            "name",
            &format!("{name_prefix}memory_digest"),
        );

        let all = agent.reads("memory://digest");
        assert!(
            all.contains("Ünïcode & spaces") && all.contains("Utrecht"),
            "{all}"
        );
        assert_eq!(agent.prompt(json!({})), all);
        let one = agent.reads("memory://digest?namespace=a%20b%26c%3Dd%2F%C3%A9");
        assert!(
            one.contains("Ünïcode & spaces") && !one.contains("Utrecht"),
            "{one}"
        );
        assert!(one.contains("\nMemories: 1."), "{one}");
        assert_eq!(agent.prompt(json!({ "namespace": "a b&c=d/é" })), one);
        let none = agent.reads("memory://digest?namespace=find&user_id=nobody");
        assert!(none.contains("No memories yet"), "{none}");
        let text = agent.reads(&format!("memory://memories/{id}"));
        assert!(
            text.contains("Ünïcode & spaces: 100% \"fine\"") && text.contains(&id),
            "{text}"
        );

        for uri in [
            "memory://memories/none",
            "memory://digest?user=ada",
            "memory://else",
        ] {
            let uri = format!("{prefix}{uri}");
            let said = agent.fails(&json!({ "do": "read", "uri": uri }));
            assert!(said.contains("there is no"), "{uri}: {said}");
        }
        let name = format!("{name_prefix}memory_digest");
        let wish = json!({ "do": "prompt", "name": name, "args": { "user": "ada" } });
        let said = agent.fails(&wish);
        assert!(said.contains("user"), "{said}");
    }

    fn forgetting(&mut self) {
        let before = self.gives("get_status", json!({}));
        assert_ne!(before["memories"], 0, "{before}");
        self.called.insert("reset_all_memory");
        let call = self.agent.call("reset_all_memory", json!({}));
        let asked = self.agent.tries(&call);
        assert_eq!(asked["step"], "asked", "{}: {asked}", self.agent.name);
        let done = self.agent.client.step("did");
        let done = self.agent.given(&done["result"]);
        assert_eq!(done["deleted"], before["memories"], "{done}");
        let after = self.gives("get_status", json!({ "scopes": true }));
        for count in ["memories", "versions", "entities", "relations"] {
            assert_eq!(after[count], 0, "{after}");
        }
        assert_eq!(after["scopes"], json!([]));
        let found = self.gives("recall", json!({ "query": "office" }));
        assert_eq!(found["count"], 0, "{found}");
    }
}
