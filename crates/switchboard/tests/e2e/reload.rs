//! The configuration file is edited while the gateway runs.

use std::fs;

use serde_json::{Value, json};
use switchboard_test_support::{
    Home, Serve, eager,
    mcp::Client,
    pipe::Pipe,
    processes::{self, Person},
    server, until, with,
};

fn pid(client: &mut Client, server: &str) -> String {
    client.call(&format!("{server}__pid"), json!({})).unwrap()
}

fn until_listed(client: &mut Client, tool: &str) {
    until(&format!("{tool} is there"), || {
        client.tools().iter().any(|name| name == tool).then_some(())
    });
}

fn until_not_listed(client: &mut Client, tool: &str) {
    until(&format!("{tool} is gone"), || {
        client.tools().iter().all(|name| name != tool).then_some(())
    });
}

#[test]
fn added_and_removed_servers_leave_others_alone() {
    let home = Home::new(json!({ "a": server(&[]) }));
    let serve = home.serve();
    let mut client = serve.client();
    until_listed(&mut client, "a__pid");
    let a = pid(&mut client, "a");

    home.set_servers(json!({ "a": server(&[]), "b": server(&[]) }));
    until_listed(&mut client, "b__pid");
    let b = pid(&mut client, "b");
    assert_eq!(pid(&mut client, "a"), a);

    home.set_servers(json!({ "b": server(&[]) }));
    until_not_listed(&mut client, "a__pid");
    let error = client.call("a__pid", json!({})).unwrap_err();
    assert_eq!(error["code"], -32602, "{error}");
    until("its process is gone", || {
        (!processes::is_alive(a.parse().unwrap())).then_some(())
    });
    assert_eq!(serve.state("a"), "absent");
    assert_eq!(pid(&mut client, "b"), b);
    serve.stop();
}

#[test]
fn changed_arguments_restart_the_server() {
    let home = Home::new(json!({ "a": server(&[]), "b": server(&[]) }));
    let serve = home.serve();
    let mut client = serve.client();
    until_listed(&mut client, "a__pid");
    until_listed(&mut client, "b__pid");
    let (a, b) = (pid(&mut client, "a"), pid(&mut client, "b"));
    home.set_servers(json!({ "a": server(&["--tools", "3"]), "b": server(&[]) }));
    until_listed(&mut client, "a__t2");
    assert_ne!(pid(&mut client, "a"), a);
    assert_eq!(pid(&mut client, "b"), b);
    until("the old process is gone", || {
        (!processes::is_alive(a.parse().unwrap())).then_some(())
    });
    serve.stop();
}

#[test]
fn changed_environment_restarts_the_server() {
    let entry = |value: &str| with(server(&[]), json!({ "env": { "GREETING": value } }));
    let home = Home::new(json!({ "a": entry("hello") }));
    let serve = home.serve();
    let mut client = serve.client();
    until_listed(&mut client, "a__env");
    let ask = json!({ "name": "GREETING" });
    assert_eq!(client.call("a__env", ask.clone()), Ok("hello".to_owned()));
    home.set_servers(json!({ "a": entry("good evening") }));
    until("it has the new one", || {
        // Meanwhile the server may be stopping or starting.
        let said = client.call("a__env", ask.clone());
        (said == Ok("good evening".to_owned())).then_some(())
    });
    serve.stop();
}

#[test]
fn changed_limits_apply_without_a_restart() {
    let home = Home::new(json!({ "a": server(&[]) }));
    let serve = home.serve();
    let mut client = serve.client();
    until_listed(&mut client, "a__pid");
    let before = pid(&mut client, "a");
    home.set_servers(json!({ "a": with(server(&[]), json!({ "requestTimeoutMs": 200 })) }));
    until("the new limit holds", || {
        let slow = client.call("a__sleep", json!({ "ms": 1_000 }));
        slow.is_err_and(|error| error["code"] == -32005)
            .then_some(())
    });
    // On a busy machine a call may exceed the new limit, too.
    let after = until("a call is quick enough", || {
        client.call("a__pid", json!({})).ok()
    });
    assert_eq!(after, before);
    serve.stop();
}

#[test]
fn denied_tool_disappears_and_cannot_be_called() {
    let home = Home::new(json!({ "a": server(&[]) }));
    let serve = home.serve();
    let mut client = serve.client();
    until_listed(&mut client, "a__pid");
    let before = pid(&mut client, "a");
    let mut events = client.listen();
    home.set_servers(json!({ "a": with(server(&[]), json!({ "tools": { "deny": ["e*"] } })) }));
    events.until("notifications/tools/list_changed");
    until_not_listed(&mut client, "a__echo");
    let tools = client.tools();
    assert!(!tools.contains(&"a__env".to_owned()), "{tools:?}");
    let error = client.call("a__echo", json!({ "text": "x" })).unwrap_err();
    assert_eq!(error["code"], -32602, "{error}");
    let mut direct = Client::try_open_at(serve.http(), "/mcp/s/a").unwrap();
    let error = direct.call("echo", json!({ "text": "x" })).unwrap_err();
    assert_eq!(error["code"], -32602, "{error}");
    assert_eq!(pid(&mut client, "a"), before);
    serve.stop();
}

#[test]
fn disabled_server_stops_and_can_return() {
    let home = Home::new(json!({ "a": server(&[]) }));
    let serve = home.serve();
    let mut client = serve.client();
    until_listed(&mut client, "a__pid");
    let before = pid(&mut client, "a");
    home.set_servers(json!({ "a": with(server(&[]), json!({ "enabled": false })) }));
    serve.until_state("a", "disabled");
    until("its process is gone", || {
        (!processes::is_alive(before.parse().unwrap())).then_some(())
    });
    until_not_listed(&mut client, "a__pid");
    home.set_servers(json!({ "a": server(&[]) }));
    until_listed(&mut client, "a__pid");
    assert_ne!(pid(&mut client, "a"), before);
    serve.stop();
}

#[test]
fn broken_edit_is_reported_and_changes_nothing() {
    let home = Home::new(json!({ "a": server(&[]) }));
    let good = fs::read_to_string(home.path("switchboard.json")).unwrap();
    let serve = home.serve();
    let mut client = serve.client();
    until_listed(&mut client, "a__pid");
    let before = pid(&mut client, "a");
    let broken = [
        "{ \"mcpServers\": {".to_owned(),
        good.replace("\"command\"", "\"comand\""),
        good.replace("mcpServers", "mcpservers"),
    ];
    for text in broken {
        home.write_config(&text);
        let problem = until("it is reported", || {
            serve.status()["configProblem"].as_str().map(str::to_owned)
        });
        assert!(problem.contains("switchboard.json:"), "{problem}");
        assert_eq!(pid(&mut client, "a"), before);
        home.write_config(&good);
        until("all is well again", || {
            serve.status()["configProblem"].is_null().then_some(())
        });
        assert_eq!(pid(&mut client, "a"), before);
    }
    fs::remove_file(home.path("switchboard.json")).unwrap();
    // No matter what the gateway makes of a missing file, it continues, and reads the next one.
    home.write_config(&good);
    assert_eq!(
        client.call("switchboard__get_status", json!({})).map(drop),
        Ok(())
    );
    until_listed(&mut client, "a__pid");
    serve.stop();
}

/// A server with this reference in its entry, and one without.
fn with_reference(reference: &str) -> Value {
    let typo = with(server(&[]), json!({ "env": { "ROOT": reference } }));
    json!({ "good": server(&[]), "typo": typo })
}

/// Checks that every surface says where the misspelt reference is, and what was probably meant.
fn assert_malformed(serve: &Serve<'_>, client: &mut Client) {
    let text = fs::read_to_string(serve.home.path("switchboard.json")).unwrap();
    let lines = text.lines().map(|line| line.find("\"${projct}\""));
    let mut places = (1..).zip(lines);
    let place = places.find_map(|(line, column)| Some(format!("{line}:{}", column? + 1)));
    let place = format!("switchboard.json:{}: ", place.unwrap());
    let problem = format!("{place}unknown reference \"${{projct}}\"");
    let meant = "did you mean ${project}?";

    let status = serve.server("typo");
    assert_eq!(status["state"], "parked", "{status}");
    let reason = status["reason"].as_str().unwrap();
    assert!(
        reason.contains(&problem) && reason.contains(meant),
        "{status}"
    );
    let whole = serve.status();
    assert!(whole["configProblem"].is_null(), "{whole}");

    let error = client.call("typo__pid", json!({})).unwrap_err();
    assert_eq!(error["code"], -32003, "{error}");
    assert_eq!(error["data"]["permanent"], true, "{error}");
    // The text may be a secret in the wrong place.
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("a reference in its entry is misspelt"),
        "{error}"
    );
    assert!(!error.to_string().contains("projct"), "{error}");
    for part in [&*problem, meant] {
        for command in ["list", "doctor", "status"] {
            let output = serve.home.run(&[command]);
            let shown = String::from_utf8_lossy(&output.stdout);
            // The table may be as narrow as a terminal.
            let words: Vec<_> = shown.split_whitespace().collect();
            assert!(words.join(" ").contains(part), "{shown}");
        }
    }
    let is_running = |person: &Person| !person.is_guard();
    let people = serve.home.people();
    assert_eq!(people.iter().filter(|one| is_running(one)).count(), 1);
}

#[test]
fn misspelt_reference_stops_its_server_alone() {
    let home = Home::new(with_reference("${projct}"));
    let serve = home.serve();
    let mut client = serve.client();
    until_listed(&mut client, "good__pid");
    let good = pid(&mut client, "good");
    assert_malformed(&serve, &mut client);

    home.set_servers(with_reference("${env:HOME}"));
    until_listed(&mut client, "typo__pid");
    let typo = pid(&mut client, "typo");

    home.set_servers(with_reference("${projct}"));
    serve.until_state("typo", "parked");
    until("its process is gone", || {
        (!processes::is_alive(typo.parse().unwrap())).then_some(())
    });
    assert_malformed(&serve, &mut client);
    assert_eq!(pid(&mut client, "good"), good);

    // The position follows the file.
    let text = fs::read_to_string(home.path("switchboard.json")).unwrap();
    home.write_config(&format!("\n\n{text}"));
    let before = serve.reason("typo");
    until("the reason names the new line", || {
        (serve.reason("typo") != before).then_some(())
    });
    assert_malformed(&serve, &mut client);
    serve.stop();

    let mut pipe = Pipe::open(&home);
    until("good is known", || pipe.call("good__pid", json!({})).ok());
    pipe.leave();
    assert!(pipe.ended().success());
}

#[test]
fn stdio_gateway_reloads_its_configuration() {
    let home = Home::new(json!({ "a": server(&[]) }));
    let mut pipe = Pipe::open(&home);
    until("a is known", || pipe.call("a__pid", json!({})).ok());
    pipe.forget_news();
    home.set_servers(json!({ "a": server(&[]), "b": eager(server(&[])) }));
    until("b is known", || pipe.call("b__pid", json!({})).ok());
    pipe.until_told("notifications/tools/list_changed");
    pipe.leave();
    assert!(pipe.ended().success());
    home.assert_nobody("the client has left");
}

#[test]
fn configuration_error_at_start_names_its_position() {
    let wrong: [(&str, &str); 3] = [
        (
            "{\n  \"mcpServers\": {\n    \"a\": { \"command\": 7 }\n  }\n}\n",
            ":3:",
        ),
        (
            "{\n  \"mcpServers\": {},\n  \"listen\": \"0.0.0.0:80\"\n}\n",
            ":3:",
        ),
        ("{\n  \"mcpServers\": {\n", ":"),
    ];
    for (text, place) in wrong {
        let home = Home::new(json!({}));
        home.write_config(text);
        for command in ["serve", "stdio"] {
            let output = home.run(&[command]);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{command}: {said}");
            let place = format!("switchboard.json{place}");
            let at = said
                .find(&place)
                .unwrap_or_else(|| panic!("no {place} in {said}"));
            // Line and column.
            let rest = &said[at + "switchboard.json:".len()..];
            let mut numbers = rest.split(':');
            for _ in 0..2 {
                let number = numbers.next().unwrap_or_default();
                assert!(number.trim().parse::<u32>().is_ok(), "{said}");
            }
        }
    }
}

#[test]
fn commands_change_the_gateway_and_the_file() {
    let home = Home::new(json!({}));
    let serve = home.serve();
    let mut client = serve.client();
    let added = home.run(&[
        "add",
        "a",
        "--",
        switchboard_test_support::fixture("mcp_fixture"),
        "--tools",
        "1",
    ]);
    assert!(added.status.success(), "{added:?}");
    until_listed(&mut client, "a__t0");
    let text = fs::read_to_string(home.path("switchboard.json")).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        file["mcpServers"]["a"]["args"],
        json!(["--tools", "1"]),
        "{text}"
    );
    let removed = home.run(&["remove", "a"]);
    assert!(removed.status.success(), "{removed:?}");
    until_not_listed(&mut client, "a__t0");
    serve.stop();
}

#[test]
fn old_server_is_gone_before_its_successor_starts() {
    let entry = |tools: &str| {
        with(
            server(&["--ignore-eof", "--ignore-term", "--tools", tools]),
            json!({ "closeTimeoutMs": 400, "termTimeoutMs": 400 }),
        )
    };
    let home = Home::new(json!({ "a": entry("1") }));
    let serve = home.serve();
    let mut client = serve.client();
    until_listed(&mut client, "a__t0");
    let before: i32 = pid(&mut client, "a").parse().unwrap();
    home.set_servers(json!({ "a": entry("2") }));
    until("the new one is there", || {
        let servers = home
            .people()
            .iter()
            .filter(|person| !person.is_guard())
            .count();
        assert!(servers <= 1, "{:#?}", home.people());
        client.tools().contains(&"a__t1".to_owned()).then_some(())
    });
    assert!(!processes::is_alive(before));
    serve.stop();
}

#[test]
fn emptied_file_stops_no_server() {
    let home = Home::new(json!({ "a": server(&[]) }));
    let serve = home.serve();
    let mut client = serve.client();
    until_listed(&mut client, "a__pid");
    let before = pid(&mut client, "a");
    home.write_config("\n");
    until("it is noticed", || {
        serve.status()["configProblem"].is_string().then_some(())
    });
    assert_eq!(pid(&mut client, "a"), before);
    home.set_servers(json!({}));
    until("an empty map is a wish", || {
        (!client.tools().contains(&"a__pid".to_owned())).then_some(())
    });
    serve.stop();
}

#[test]
fn missing_file_stops_no_server() {
    let home = Home::new(json!({ "a": server(&[]) }));
    let serve = home.serve();
    let mut client = serve.client();
    until_listed(&mut client, "a__pid");
    let before = pid(&mut client, "a");
    let (file, aside) = (home.path("switchboard.json"), home.path("aside"));
    fs::rename(&file, &aside).unwrap();
    until("it is noticed", || {
        let status = serve.status();
        assert!(client.tools().contains(&"a__pid".to_owned()));
        status["configProblem"].is_string().then_some(())
    });
    assert_eq!(pid(&mut client, "a"), before);
    fs::rename(&aside, &file).unwrap();
    until("all is well again", || {
        serve.status()["configProblem"].is_null().then_some(())
    });
    assert_eq!(pid(&mut client, "a"), before);
    serve.stop();
}
