//! The stored form of a request: its row, and its entries in the audit log.

use std::{borrow::Cow, sync::Arc};

use serde::Serialize;
use switchboard_approvals::{Asker, Record, broker::Change};
use switchboard_base::scrub;
use switchboard_client::Raw;
use switchboard_redact::{redact, redact_text};
use switchboard_store::{self as store, Approval, Entry};

use super::{policy, time_of};

/// The most bytes of one payload in an entry of the audit log.
const PAYLOAD_BYTES: usize = 8 * 1024;

/// The record of a request's creation in the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Noted {
    /// The request has an entry of its own.
    Listed,
    /// An entry counts it together with others.
    Counted,
    /// One of the two: the request was made in an earlier run.
    Earlier,
}

/// All writes that a change of a request needs.
pub(super) fn changes(record: &Record, why: Change, noted: Noted, now: u64) -> Vec<store::Change> {
    let kept = kept(record);
    // A record is plain data: writing it as JSON does not fail.
    let mut body = serde_json::to_string(&*kept).unwrap_or_default();
    // An open request is stored verbatim, because it may still be carried out.
    if !record.is_live() {
        body = scrub::json(&body).into_owned();
    }
    let row = Approval {
        id: Arc::clone(&record.id),
        kind: record.ask.kind.as_str().into(),
        status: record.status.as_str().into(),
        open: record.is_live(),
        server: Arc::clone(&record.ask.server),
        created: time_of(record.created),
        changed: time_of(now),
        version: record.version,
        body: body.into(),
    };
    let was = record.version - 1;
    let mut changes = vec![store::Change::Approval { row, was }];
    changes.extend(entry(record, why, noted, now).map(store::Change::Audit));
    if why == Change::Decided {
        let remembered = policy::remembered(record, now);
        changes.extend(remembered.map(store::Change::Remember));
    }
    changes
}

/// A request as it is stored. One that is closed and that no person decided about is cut, because a
/// client can make many.
fn kept(record: &Record) -> Cow<'_, Record> {
    let undecided = record.decided.is_none() && record.agreed.is_none();
    if record.is_live() || !undecided || record.ask.request.as_bytes().len() <= PAYLOAD_BYTES {
        return Cow::Borrowed(record);
    }
    let mut record = record.clone();
    record.ask.request = redact(&record.ask.request, PAYLOAD_BYTES);
    // The URI of a resource is a part of the request.
    record.ask.tool = record.ask.tool.map(|tool| scrub::brief(&tool).into());
    Cow::Owned(record)
}

/// The body of an audit log entry about a request.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Said<'a> {
    kind: &'static str,
    status: &'static str,
    server: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<&'a str>,
    /// The client that made the request, if this entry is about that.
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<&'a Asker>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    from: Option<&'a switchboard_approvals::Source>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remember: Option<&'a switchboard_approvals::Remember>,
    /// The earlier agreement to ask the model, if this entry is about the model's answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    agreed: Option<Agreed<'a>>,
    /// Time from the request to the decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    took_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<Raw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    edits: Option<Raw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Raw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<&'a switchboard_approvals::Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// The action of a person before the model answered.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Agreed<'a> {
    by: &'a str,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    from: Option<&'a switchboard_approvals::Source>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    action: &'static str,
    at_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    edits: Option<Raw>,
}

fn entry(record: &Record, why: Change, noted: Noted, now: u64) -> Option<Entry> {
    let what = match why {
        Change::Created => "asked",
        Change::Decided => "decided",
        Change::Generated => "generated",
        Change::Expired => "expired",
        Change::Withdrawn => "withdrawn",
        Change::Delivered => "delivered",
        Change::Escalated => "escalated",
        Change::Resumed | Change::Orphaned | Change::Forgotten => return None,
    };
    let by_itself = matches!(
        why,
        Change::Created | Change::Expired | Change::Withdrawn | Change::Escalated
    );
    if noted == Noted::Counted && by_itself {
        return None;
    }
    let payload = |raw: &Raw| redact(raw, PAYLOAD_BYTES);
    let shows_request =
        why == Change::Created || (noted != Noted::Listed && why == Change::Decided);
    let asked = shows_request.then(|| payload(&record.ask.request));
    let decided = record
        .decided
        .as_ref()
        .filter(|_| matches!(why, Change::Decided | Change::Generated));
    let agreed = decided.and(record.agreed.as_ref()).map(|agreed| Agreed {
        by: &agreed.by,
        from: agreed.from.as_ref(),
        note: agreed.note.as_deref().map(redact_text),
        action: agreed.action.as_str(),
        at_ms: agreed.at,
        reason: agreed.reason.as_deref().map(redact_text),
        edits: agreed.edits.as_ref().map(payload),
    });
    let said = Said {
        kind: record.ask.kind.as_str(),
        status: record.status.as_str(),
        server: &record.ask.server,
        tool: record.ask.tool.as_deref().map(scrub::brief),
        client: record.ask.client.as_deref(),
        actor: (why == Change::Created)
            .then_some(record.ask.asker.as_ref())
            .flatten(),
        rule: record.ask.rule.as_deref().map(scrub::brief),
        by: decided.map(|decided| &*decided.by),
        from: decided.and_then(|decided| decided.from.as_ref()),
        note: decided
            .and_then(|decided| decided.note.as_deref())
            .map(redact_text),
        action: decided.map(|decided| decided.action.as_str()),
        reason: decided
            .and_then(|decided| decided.reason.as_deref())
            .map(redact_text),
        remember: decided.and_then(|decided| decided.remember.as_ref()),
        agreed,
        took_ms: decided.map(|_| now.saturating_sub(record.created)),
        request: asked,
        edits: decided
            .and_then(|decided| decided.edits.as_ref())
            .map(payload),
        answer: decided.and(record.answer.as_ref()).map(payload),
        usage: record.usage.as_ref(),
        error: record.error.as_deref().map(redact_text),
    };
    Some(Entry {
        at: time_of(now),
        what: what.into(),
        subject: Arc::clone(&record.id),
        // Plain data: see above.
        body: scrub::json(&serde_json::to_string(&said).unwrap_or_default()).into(),
    })
}

#[cfg(test)]
mod tests {
    use switchboard_approvals::Status;
    use switchboard_redact::Secret;

    use super::*;

    fn body(record: &Record) -> Arc<str> {
        match changes(record, Change::Resumed, Noted::Listed, 0).remove(0) {
            store::Change::Approval { row, .. } => row.body,
            other => panic!("{other:?}"),
        }
    }

    fn entry_of(record: &Record, why: Change, noted: Noted) -> Option<String> {
        let mut changes = changes(record, why, noted, 0).into_iter();
        changes.find_map(|change| match change {
            store::Change::Audit(entry) => Some(format!("{} {}", entry.what, entry.body)),
            _ => None,
        })
    }

    fn long() -> Record {
        let long = "x".repeat(50_000);
        let ask = format!(
            r#"{{"kind":"tool_call","server":"s","summary":"","request":{{"name":"t","arguments":{{"a":"{long}"}}}},"key":"k"}}"#
        );
        Record::new("a".into(), serde_json::from_str(&ask).unwrap(), 0)
    }

    #[test]
    fn undecided_request_is_cut_once_closed() {
        let mut record = long();
        assert!(body(&record).len() > 50_000);
        for status in [Status::Withdrawn, Status::TimedOut] {
            record.status = status;
            let closed = body(&record);
            assert!(closed.len() < 2 * PAYLOAD_BYTES, "{}", closed.len());
            let read: Record = serde_json::from_str(&closed).unwrap();
            assert_eq!(read.ask.request.member("name").unwrap().as_str(), "\"t\"");
        }
        record.status = Status::Approved;
        record.decided =
            Some(serde_json::from_str(r#"{"action":"approve","by":"ann","at":1}"#).unwrap());
        assert!(body(&record).len() > 50_000);
    }

    #[test]
    fn counted_request_gets_entry_once_decided() {
        let mut record = long();
        for why in [
            Change::Created,
            Change::Escalated,
            Change::Withdrawn,
            Change::Expired,
        ] {
            assert!(entry_of(&record, why, Noted::Listed).is_some(), "{why:?}");
            assert_eq!(entry_of(&record, why, Noted::Counted), None, "{why:?}");
            assert!(entry_of(&record, why, Noted::Earlier).is_some(), "{why:?}");
        }
        record.decided =
            Some(serde_json::from_str(r#"{"action":"approve","by":"ann","at":1}"#).unwrap());
        let plain = entry_of(&record, Change::Decided, Noted::Listed).unwrap();
        assert!(
            plain.starts_with("decided ") && !plain.contains("request"),
            "{plain}"
        );
        for noted in [Noted::Counted, Noted::Earlier] {
            let whole = entry_of(&record, Change::Decided, noted).unwrap();
            assert!(
                whole.starts_with("decided ") && whole.contains("request"),
                "{whole}"
            );
        }
    }

    #[test]
    fn closed_request_is_stored_without_known_secrets() {
        const VALUE: &str = "kept-while-open-8Zq1";
        scrub::register(scrub::Owner::Server("k"), &[Secret::new("k", VALUE)]).unwrap();
        let ask = format!(
            r#"{{"kind":"trust","server":"s","summary":"","request":{{"why":"my key is {VALUE}"}},"key":"k"}}"#
        );
        let mut record = Record::new("a".into(), serde_json::from_str(&ask).unwrap(), 0);
        assert!(body(&record).contains(VALUE));
        record.status = Status::Withdrawn;
        let closed = body(&record);
        assert!(closed.contains("my key is [secret k]"), "{closed}");
        serde_json::from_str::<Record>(&closed).unwrap();
    }
}
