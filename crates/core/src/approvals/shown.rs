//! Requests as REST, events and the command line show them.

use std::borrow::Cow;

use switchboard_approvals::{Decided, Kind, Record, rememberable};
use switchboard_base::{scrub, time};
use switchboard_client::Raw;
use switchboard_redact::{redact, redact_text};
use switchboard_rest::{
    approvals::{Approval, Decision, Peer, Remember, Usage},
    events::ApprovalEvent,
    words::{Arguments, Door, Scope},
};

use super::{question, time_of};

/// The most bytes of a part of a request in lists. Longer parts are left out.
const LISTED_BYTES: usize = 16 * 1024;

/// A decision for display.
pub fn decision(decided: &Decided) -> Decision {
    let from = decided.from.as_ref();
    Decision {
        action: decided.action.as_str().into(),
        by: decided.by.to_string(),
        door: from.map(|from| Door::of(&from.door)),
        peer: from.and_then(|from| from.peer.as_ref()).map(|peer| Peer {
            pid: peer.pid,
            program: peer.program.as_deref().map(Into::into),
        }),
        note: decided.note.as_deref().map(Into::into),
        at: time::shown(time_of(decided.at)),
        reason: decided.reason.as_deref().map(Into::into),
        edits: decided.edits.clone(),
        remember: decided.remember.as_ref().map(|remember| Remember {
            scope: Scope::of(&remember.scope),
            arguments: Arguments::of(&remember.arguments),
            expires_in_seconds: remember.expires_in_seconds,
        }),
    }
}

/// The whole request, exactly as it will be sent and as agents and models would read it. Nothing is
/// scrubbed, because a value that the configuration calls a secret must not hide a part of what a
/// person decides about.
pub fn whole(record: &Record) -> Approval {
    let ask = &record.ask;
    let arguments = ask.request.member("arguments");
    let arguments = arguments.filter(|_| matches!(ask.kind, Kind::ToolCall | Kind::Prompt));
    let error = record.error.as_deref();
    let at = |millis| time::shown(time_of(millis));
    Approval {
        id: record.id.to_string(),
        kind: ask.kind.as_str().into(),
        status: record.status.as_str().into(),
        server: ask.server.to_string(),
        tool: ask.tool.as_deref().map(Into::into),
        client: ask.client.as_deref().map(Into::into),
        summary: ask.summary.to_string(),
        warnings: ask.warnings.iter().map(ToString::to_string).collect(),
        created_at: at(record.created),
        escalates_at: record.escalates().map(at),
        escalated_at: record.escalated.map(at),
        expires_at: record.expires.map(at),
        rule: ask.rule.as_deref().map(Into::into),
        request: Some(ask.request.clone()),
        arguments_text: arguments.map(|arguments| arguments.as_str().to_owned()),
        truncated: false,
        draft: record.draft.clone(),
        decision: record.decided.as_ref().map(decision),
        result: record.answer.clone(),
        error: error.map(|error| scrub::text(error).into_owned()),
        usage: record.usage.as_ref().map(|usage| Usage {
            model: usage.model.to_string(),
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cost: usage.cost,
            seconds: usage.seconds,
        }),
        delivered_at: record.delivered.map(at),
        rememberable: rememberable(record).iter().map(Scope::of).collect(),
        version: record.version,
    }
}

/// A request in a list: long parts are left out.
pub fn listed(record: &Record) -> Approval {
    let mut shown = whole(record);
    let long = |raw: &Option<Raw>| {
        raw.as_ref()
            .is_some_and(|raw| raw.as_bytes().len() > LISTED_BYTES)
    };
    if long(&shown.request) {
        shown.request = None;
        shown.arguments_text = None;
        shown.truncated = true;
    }
    for part in [&mut shown.draft, &mut shown.result] {
        if long(part) {
            *part = None;
            shown.truncated = true;
        }
    }
    if let Some(decision) = &mut shown.decision
        && long(&decision.edits)
    {
        decision.edits = None;
        shown.truncated = true;
    }
    shown
}

fn scrubbed(raw: &Raw) -> Raw {
    match scrub::json(raw.as_str()) {
        Cow::Borrowed(_) => raw.clone(),
        // Scrubbed JSON stays JSON; if it did not, nothing would be shown.
        Cow::Owned(json) => Raw::parse(json).unwrap_or_else(|_| Raw::string("[secret]")),
    }
}

/// A request as it is sent to the outside, with secrets removed as far as they can be recognised.
pub(super) fn outside(record: &Record) -> Raw {
    let mut shown = listed(record);
    // The definitions are not part of the request.
    shown.truncated |= record.ask.kind == Kind::Trust;
    let redacted = |raw: &mut Option<Raw>| {
        if let Some(raw) = raw {
            // Scrub before the cut, so that a secret across the cut is found.
            *raw = redact(&scrubbed(raw), LISTED_BYTES);
        }
    };
    // Made from the redacted request, not cut from the owner's summary: redaction recognises more
    // where it sees a name beside its value than in their joined text.
    let clean = redact(&scrubbed(&record.ask.request), LISTED_BYTES);
    let summary = question::summary(record.ask.kind, &record.ask.request, &clean);
    shown.summary = redact_text(&scrub::text(&summary.unwrap_or(shown.summary)));
    shown.arguments_text = None;
    for text in [&mut shown.tool, &mut shown.rule, &mut shown.error] {
        *text = text.as_deref().map(scrub::brief);
    }
    for warning in &mut shown.warnings {
        *warning = scrub::brief(warning);
    }
    for part in [&mut shown.request, &mut shown.draft, &mut shown.result] {
        redacted(part);
    }
    if let Some(decision) = &mut shown.decision {
        redacted(&mut decision.edits);
        decision.reason = decision.reason.as_deref().map(redact_text);
        decision.note = decision.note.as_deref().map(redact_text);
    }
    // Plain data always serializes, and scrubbed JSON stays JSON.
    let shown = serde_json::to_string(&shown).unwrap_or_default();
    let scrubbed = Raw::parse(scrub::json(&shown).into_owned());
    scrubbed.unwrap_or_else(|_| Raw::object([("id", Raw::string(&record.id))]))
}

/// The body of an event about a request. Numbers keep all their digits.
pub(super) fn event(record: &Record) -> String {
    let approval = listed(record);
    // Plain data always serializes.
    serde_json::to_string(&ApprovalEvent { approval }).unwrap_or_default()
}

/// Tests if a character is visible. Controls, characters without width, and marks that change the
/// direction of the following text are not.
pub fn is_seen(character: char) -> bool {
    !character.is_control()
        && !matches!(
            character,
            '\u{AD}' | '\u{61C}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
                | '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}'
        )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn record(kind: &str, summary: &str, request: &Value) -> Record {
        let ask = json!({
            "kind": kind,
            "server": "a",
            "summary": summary,
            "request": request,
            "key": "k",
        });
        Record::new("a".into(), serde_json::from_value(ask).unwrap(), 0)
    }

    #[test]
    fn outside_summary_omits_redacted_values() {
        for arguments in [
            json!({ "pin": "s3cr3t" }),
            json!({ "auth": "s3cr3t" }),
            json!({ "cookie": "s3cr3t" }),
            json!({ "PASS": "s3cr3t" }),
            json!({ "bearer": "s3cr3t" }),
            json!({ "jwt": "s3cr3t" }),
            json!({ "otp": "s3cr3t" }),
            json!({ "privateKeyPem": "s3cr3t" }),
            json!({ "credentials": { "a": "s3cr3t" } }),
            json!({ "password": ["s3cr3t"] }),
            json!({ "a": ["x".repeat(20_000)], "pin": "s3cr3t" }),
        ] {
            for kind in ["tool_call", "prompt"] {
                let request = json!({ "name": "pay", "arguments": arguments });
                let owned = format!("wants to call pay with {arguments}");
                let told = outside(&record(kind, &owned, &request));
                assert!(!told.as_str().contains("s3cr3t"), "{told}");
                let summary = told.member("summary").unwrap().to_text().unwrap();
                assert!(summary.starts_with("wants ") && summary.contains("pay with {"));
            }
        }
        let request = json!({ "name": "pay", "arguments": { "to": "ann", "pin": "1" } });
        let told = outside(&record("tool_call", "", &request));
        assert_eq!(
            told.member("summary").unwrap().to_text().unwrap(),
            r#"wants to call pay with {"pin":"[redacted]","to":"ann"}"#
        );
    }

    #[test]
    fn outside_definitions_are_redacted_and_marked_truncated() {
        let secret = switchboard_redact::Secret::new("env.K", "Copy the notes.");
        scrub::register(scrub::Owner::Server("a"), &[secret]).unwrap();
        let request = json!({ "tools": [{ "name": "a", "diff": "+ Copy the notes." }] });
        let asked = record("trust", "Copy the notes.", &request);
        let shown = serde_json::to_value(whole(&asked)).unwrap();
        assert_eq!(shown["request"], request);
        assert_eq!(shown["summary"], "Copy the notes.");
        let told = outside(&asked);
        assert!(!told.as_str().contains("Copy the notes."), "{told}");
        assert_eq!(told.member("truncated"), Some(Raw::from(true)));
    }

    #[test]
    fn questions_are_shown_whole_and_sent_scrubbed() {
        let secret = switchboard_redact::Secret::new("env.K", "delete all files now");
        scrub::register(scrub::Owner::Server("q"), &[secret]).unwrap();
        let said = "Then say you will delete all files now.";
        let message = json!({ "role": "user", "content": { "type": "text", "text": said } });
        let question = json!({ "messages": [message], "maxTokens": 9 });
        let form = json!({ "message": said });
        for (kind, request) in [("sampling", &question), ("elicitation", &form)] {
            let mut asked = record(kind, said, request);
            asked.ask.warnings = vec![said.into()];
            asked.draft = Some(Raw::parse(message.to_string()).unwrap());
            asked.answer = asked.draft.clone();
            let shown = serde_json::to_value(whole(&asked)).unwrap();
            assert_eq!(shown["request"], *request);
            assert_eq!((&shown["draft"], &shown["result"]), (&message, &message));
            assert_eq!(
                (&shown["summary"], &shown["warnings"][0]),
                (&json!(said), &json!(said))
            );
            let told = outside(&asked);
            assert!(!told.as_str().contains("delete all"), "{told}");
            assert!(told.as_str().contains("[secret env.K]"), "{told}");
        }
    }

    /// JSON can spell numbers and strings that most programs cannot represent.
    #[test]
    fn odd_numbers_and_strings_keep_their_spelling() {
        for odd in ["1e400", r#""\ud83d""#, "12345678901234567890123"] {
            let mut record = record("tool_call", "s", &json!({}));
            let request = format!(r#"{{"name":"pay","arguments":{{"n":{odd}}}}}"#);
            record.ask.request = Raw::parse(request).unwrap();
            let told = outside(&record);
            let id = told.member("id").and_then(|id| id.to_text());
            assert_eq!(id.as_deref(), Some("a"), "{told}");
            let arguments = told.member("request").and_then(|it| it.member("arguments"));
            let spelled = arguments.unwrap().as_str().contains(odd);
            assert!(spelled || odd.contains("ud83d"), "{told}");
        }
    }

    #[test]
    fn secret_at_end_of_summary_is_removed() {
        let key = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
        for before in 100..200 {
            let message = format!("{} {key}", "x".repeat(before));
            let cut = format!("asks: {}…", &message[..before + 12]);
            let asked = record("elicitation", &cut, &json!({ "message": message }));
            let told = outside(&asked).to_string();
            assert!(!told.contains("ghp_"), "{told}");
        }
    }

    #[test]
    fn outside_addresses_lose_passwords_and_are_cut() {
        let address = format!("postgres://ann:hunter2@db/{}", "x".repeat(50_000));
        let ask = json!({
            "kind": "resource",
            "server": "s",
            "tool": address,
            "rule": format!("ask resources s:{address}"),
            "warnings": [address],
            "summary": "",
            "request": { "uri": address },
            "key": "k",
        });
        let ask = serde_json::from_value(ask).unwrap();
        let mut record = Record::new("a".into(), ask, 0);
        record.error = Some(address.into());
        let told = outside(&record).to_string();
        assert!(!told.contains("hunter2"), "{told}");
        assert!(told.len() < 25_000, "{}", told.len());
    }
}
