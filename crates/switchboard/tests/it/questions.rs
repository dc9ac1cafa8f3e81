//! Requests of servers: for a model's answer, or for the user's; answered from the command line.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    sync::mpsc::{self, Receiver},
    thread,
};

use serde_json::{Value, json};
use switchboard_test_support::until;

use crate::{
    approvals::{ask, gateway, gateway_with, id},
    support::{Place, json},
    terminal::{self, Session},
};

#[test]
fn user_answers_in_place_of_the_model() {
    let place = Place::new();
    let _gateway = gateway(&place);
    let request = json!({
        "systemPrompt": "Be\u{200b} brief.",
        "messages": [
            {"role": "user", "content": {"type": "text", "text": "\u{1b}]0;owned\u{7}What\u{202e} is it?\nSecond line"}},
            {"role": "user", "content": {"type": "image", "data": "AAAA", "mimeType": "image/png"}},
        ],
        "maxTokens": 10,
    });
    let (calling, asked) = ask(&place, "asker:ask_model", &request.to_string());
    let id = id(&asked);
    let show = place.run(&["approvals", "show", id]);
    for part in [
        "\nsystem prompt\n  Be⟨U+200B⟩ brief.\n",
        "\nmessage from user\n  ⟨U+001B⟩]0;owned⟨U+0007⟩What⟨U+202E⟩ is it?\n  Second line\n",
        "  [image image/png, 3 bytes]\n",
        "\"maxTokens\": 10",
    ] {
        assert!(show.out.contains(part), "{part}: {show:?}");
    }
    assert!(
        show.err.contains("answers in place of the model"),
        "{show:?}"
    );
    // There is no model.
    let done = place.run(&["approvals", "approve", id, "--yes"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(
        done.err.contains("answer yourself with `respond`"),
        "{done:?}"
    );
    let done = place.run(&["approvals", "respond", id, " "]);
    assert_eq!(done.code, Some(2), "{done:?}");
    let done = place.run_with_input(&["approvals", "respond", id, "-"], "Forty-two.\n");
    assert_eq!(done.code, Some(0), "{done:?}");
    let (code, said) = calling.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("Forty-two.") && said.contains("human"),
        "{said}"
    );

    let (calling, asked) = ask(&place, "asker:ask_model", &request.to_string());
    let done = place.run(&["approvals", "reject", asked["id"].as_str().unwrap()]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(calling.end().1.contains("rejected"));
}

/// A model that answers `Drafted.`: its address, and the requests that it gets.
fn model() -> (String, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let (sender, asked) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut length = 0;
            let mut line = String::new();
            while stream.read_line(&mut line).unwrap() > 2 {
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            let message = json!({"role": "assistant", "content": "Drafted."});
            let answer = json!({
                "id": "1", "object": "chat.completion", "model": "big",
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
            })
            .to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
                 Connection: close\r\n\r\n",
                answer.len()
            );
            stream
                .get_mut()
                .write_all((head + &answer).as_bytes())
                .unwrap();
            let body = serde_json::from_slice(&body).unwrap();
            if sender.send(body).is_err() {
                break;
            }
        }
    });
    (address, asked)
}

#[test]
fn model_gets_edited_request_and_answer_is_reviewed() {
    let place = Place::new();
    let (address, asked_of_model) = model();
    let provider =
        json!({"kind": "openai", "baseUrl": address, "model": "small", "models": ["big"]});
    let sampling = json!({"review": true, "provider": provider});
    let more = json!({"sampling": sampling, "approvals": {"notify": "off"}});
    let _gateway = gateway_with(&place, &more);
    let message = json!({"role": "user", "content": {"type": "text", "text": "What is it?"}});
    let request = json!({"messages": [message], "maxTokens": 10}).to_string();
    let (calling, asked) = ask(&place, "asker:ask_model", &request);
    let id = id(&asked);
    let approve = [
        "approvals",
        "approve",
        id,
        "--yes",
        "--model",
        "big",
        "--max-tokens",
        "5",
    ];
    let done = place.run(&approve);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.err.contains("the model is answering"), "{done:?}");
    let body = asked_of_model.recv().unwrap();
    assert_eq!(body["model"], "big");
    assert!(body.to_string().contains(":5"), "{body}");
    until("the model has answered", || {
        json(&place, &["approvals", "show", id, "--json"])["status"] == "reviewing"
    });
    let show = place.run(&["approvals", "show", id]);
    for part in [
        "\nmodel's answer\n  Drafted.\n",
        "\nedits\n  {\n    \"model\": \"big\",\n    \"maxTokens\": 5\n  }\n",
        "\nmodel\n  big: 3 tokens in, 2 out, ",
    ] {
        assert!(show.out.contains(part), "{part}: {show:?}");
    }
    // The request was approved; now the answer is pending.
    let wrong = place.run(&["approvals", "approve", id, "--yes", "--model", "big"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    let output = place
        .command(&["approvals", "approve", id, "--yes", "--edit"])
        .env("VISUAL", "sed -i s/Drafted/Edited/")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let (code, said) = calling.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("Edited.") && !said.contains("Drafted"),
        "{said}"
    );
}

#[test]
fn long_text_is_truncated_without_full() {
    let place = Place::new();
    let _gateway = gateway(&place);
    let text = "a line\n".repeat(500) + "the end";
    let message = json!({"role": "user", "content": {"type": "text", "text": text}});
    let request = json!({"messages": [message], "maxTokens": 10});
    let (_calling, asked) = ask(&place, "asker:ask_model", &request.to_string());
    let show = place.run(&["approvals", "show", id(&asked)]);
    assert!(
        !show.out.contains("the end") && show.out.contains("--full"),
        "{show:?}"
    );
    let show = place.run(&["approvals", "show", id(&asked), "--full"]);
    assert!(
        show.out.contains("the end") && !show.out.contains("--full"),
        "{show:?}"
    );
}

/// A question; the order of its fields matters.
pub(crate) const FORM: &str = concat!(
    r#"{"message": "Who are you\u202e?", "requestedSchema": {"type": "object", "properties": {"#,
    r#""name": {"type": "string", "title": "Your name"}, "#,
    r#""age": {"type": "integer", "minimum": 0, "maximum": 200}, "#,
    r#""size": {"type": "string", "enum": ["s", "m"], "default": "m"}, "#,
    r#""password": {"type": "string"}}, "required": ["name"]}}"#
);

#[test]
fn a_question_is_answered() {
    let place = Place::new();
    let _gateway = gateway(&place);
    let (calling, asked) = ask(&place, "asker:ask_person", FORM);
    let first = id(&asked);
    let list = place.run(&["approvals"]);
    assert!(
        list.out.contains("\n    asks: ")
            && list.out.contains("\n    warning: ")
            && list.out.contains("`password`"),
        "{list:?}"
    );
    let show = place.run(&["approvals", "show", first]);
    for part in [
        "\nwarning: the field `password` seems to ask for a password or key\n",
        "\nmessage\n  Who are you⟨U+202E⟩?\n",
        "\nfield name\n  Your name\n  text, required\n",
        "\nfield age\n  a whole number, 0 to 200, optional\n",
        "  default: \"m\"\n    s\n    m\n",
    ] {
        assert!(show.out.contains(part), "{part}: {show:?}");
    }
    let approve =
        |more: &[&str]| place.run(&[&["approvals", "approve", first, "--yes"], more].concat());
    for (more, why) in [
        (&[][..], "name is required"),
        (
            &["--field", "name=Ada", "--field", "age=300"],
            "age must be at most 200",
        ),
        (&["--field", "nmae=Ada"], "did you mean `name`?"),
        (&["--content", r#"{"name": 1}"#], "name must be a string"),
        (&["--content", "[]"], "not a JSON object"),
        (&["--edit"], "--edit applies only to"),
    ] {
        let done = approve(more);
        assert_eq!(done.code, Some(2), "{done:?}");
        assert!(done.err.contains(why), "{done:?}");
    }
    let done = approve(&["--field", "name=Ada", "--field", "age=36"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let (_, said) = calling.end();
    let told: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        told,
        json!({"action": "accept", "content": {"name": "Ada", "age": 36, "size": "m"}})
    );

    for (more, action) in [("--decline", "decline"), ("--cancel", "cancel")] {
        let (calling, asked) = ask(&place, "asker:ask_person", FORM);
        let done = place.run(&["approvals", "respond", id(&asked), more]);
        assert_eq!(done.code, Some(0), "{done:?}");
        assert_eq!(
            serde_json::from_str::<Value>(&calling.end().1).unwrap(),
            json!({"action": action})
        );
    }
    let (calling, asked) = ask(&place, "asker:ask_person", FORM);
    let done = place.run(&["approvals", "respond", id(&asked), "words"]);
    assert_eq!(done.code, Some(2), "{done:?}");
    assert_eq!(
        place.run(&["approvals", "reject", id(&asked)]).code,
        Some(0)
    );
    assert!(calling.end().1.contains("decline"));
}

#[test]
fn question_is_answered_field_by_field() {
    let place = Place::new();
    let _gateway = gateway(&place);
    let (calling, asked) = ask(&place, "asker:ask_person", FORM);
    let approve = ["approvals", "approve", id(&asked)];
    let mut session = Session::start(&place, &approve, &[("NO_COLOR", "1")]);
    session.wait_for("\r\nname: ");
    session.type_in("\n");
    session.wait_for("this field is required");
    session.type_in("Ada\n");
    session.wait_for("\r\nage: ");
    session.type_in("old\n");
    session.wait_for("must be a number");
    session.type_in("36\n");
    session.wait_for("size [\"m\"]: ");
    session.type_in("\n");
    session.wait_for("looks like a password or key");
    session.wait_for("password: ");
    session.type_in("\n");
    session.wait_for("Send this to asker");
    session.type_in("y\n");
    let (code, seen) = session.end();
    assert_eq!(code, Some(0), "{seen}");
    let told: Value = serde_json::from_str(&calling.end().1).unwrap();
    assert_eq!(
        told["content"],
        json!({"name": "Ada", "age": 36, "size": "m"})
    );
}

#[test]
fn url_is_shown_and_never_opened() {
    let place = Place::new();
    let _gateway = gateway(&place);
    let url = "https://you@evil.example:8443/login?next=bank.example";
    let request = json!({"mode": "url", "message": "Sign in", "url": url, "elicitationId": "e1"});
    let (calling, asked) = ask(&place, "asker:ask_person", &request.to_string());
    let script = format!(
        "#!/bin/sh\ntouch {}\n",
        place.user().join("opened").display()
    );
    for opener in ["bin/xdg-open", "bin/open"] {
        let script = place.write(opener, &script);
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}/../bin:/usr/bin:/bin", place.user().display());
    let approve = ["approvals", "approve", id(&asked)];
    let (code, seen) = terminal::run(
        &place,
        &approve,
        "y\n",
        &[("PATH", &path), ("NO_COLOR", "1")],
    );
    assert_eq!(code, Some(0), "{seen}");
    assert!(
        seen.contains(url) && seen.contains("host  evil.example\r\n"),
        "{seen}"
    );
    assert!(
        seen.contains("warning: the part before the `@` is a user name"),
        "{seen}"
    );
    assert!(!place.user().join("opened").exists());
    assert_eq!(
        serde_json::from_str::<Value>(&calling.end().1).unwrap(),
        json!({"action": "accept"})
    );
}
