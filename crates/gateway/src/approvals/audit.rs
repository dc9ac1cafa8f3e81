//! What is written down of a request: the request itself, and what the audit log says of it.

use std::sync::Arc;

use serde::Serialize;
use switchboard_approvals::{Record, broker::Change};
use switchboard_client::Raw;
use switchboard_redact::{redact, redact_text};
use switchboard_store::{self as store, Approval, Entry};

use super::{policy, time_of};
use crate::scrub;

/// The most bytes of one payload in an entry of the audit log.
const PAYLOAD_BYTES: usize = 8 * 1024;

/// Everything that is to be written when this has happened to a request.
pub(super) fn changes(record: &Record, why: Change, now: u64) -> Vec<store::Change> {
    // A record is plain data: writing it as JSON does not fail.
    let mut body = serde_json::to_string(record).unwrap_or_default();
    // An open request is kept to the byte, because it may still be carried out.
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
    changes.extend(entry(record, why, now).map(store::Change::Audit));
    if why == Change::Decided {
        let remembered = policy::remembered(record, now);
        changes.extend(remembered.map(store::Change::Remember));
    }
    changes
}

/// What the audit log says of a request.
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
    /// Who had agreed that the model is asked, where this is about its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    agreed: Option<Agreed<'a>>,
    /// How long it took to decide.
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

/// What a person did before the model answered.
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

fn entry(record: &Record, why: Change, now: u64) -> Option<Entry> {
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
    let payload = |raw: &Raw| redact(raw, PAYLOAD_BYTES);
    let asked = (why == Change::Created).then(|| payload(&record.ask.request));
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
        // As above.
        body: scrub::json(&serde_json::to_string(&said).unwrap_or_default()).into(),
    })
}

#[cfg(test)]
mod tests {
    use switchboard_approvals::Status;
    use switchboard_redact::Secret;

    use super::*;

    #[test]
    fn closed_request_is_kept_without_known_secrets() {
        const VALUE: &str = "kept-while-open-8Zq1";
        scrub::register(&[Secret::new("k", VALUE)]);
        let ask = format!(
            r#"{{"kind":"trust","server":"s","summary":"","request":{{"why":"my key is {VALUE}"}},"key":"k"}}"#
        );
        let mut record = Record::new("a".into(), serde_json::from_str(&ask).unwrap(), 0);
        let body = |record: &Record| match changes(record, Change::Resumed, 0).remove(0) {
            store::Change::Approval { row, .. } => row.body,
            other => panic!("{other:?}"),
        };
        assert!(body(&record).contains(VALUE));
        record.status = Status::Withdrawn;
        let closed = body(&record);
        assert!(closed.contains("my key is [secret k]"), "{closed}");
        serde_json::from_str::<Record>(&closed).unwrap();
    }
}
