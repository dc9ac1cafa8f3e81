//! The activity record of a call, written however the call ends.

use std::{
    borrow::Cow,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use switchboard_base::{
    caller::{Caller, Origin},
    error::Error,
    scrub,
};
use switchboard_client::Raw;
use switchboard_outbound::upstream::Upstream;
use switchboard_store::{Activity, Outcome};
use switchboard_wire::Name;

use super::UpstreamRequest;
use crate::core::Core;

/// The most characters of an error that are stored.
const ERROR_CHARS: usize = 500;

#[derive(Debug)]
pub(super) struct Record {
    core: Arc<Core>,
    upstream: Arc<Upstream>,
    pub(super) started: Instant,
    at: SystemTime,
    method: Cow<'static, str>,
    name: Arc<str>,
    client: Arc<str>,
    principal: Arc<str>,
    door: &'static str,
    request_bytes: u64,
    /// Time that the call has waited for people and for its client so far.
    waited: Duration,
    /// Start of the current wait for them.
    waiting: Option<Instant>,
    finished: bool,
}

impl Record {
    pub(super) fn new(
        core: &Arc<Core>,
        caller: &Caller,
        upstream: &Arc<Upstream>,
        outgoing: &UpstreamRequest<'_>,
    ) -> Self {
        Self {
            core: Arc::clone(core),
            upstream: Arc::clone(upstream),
            started: Instant::now(),
            at: SystemTime::now(),
            method: outgoing.method.clone(),
            name: Arc::clone(&outgoing.name),
            client: caller.shown(),
            principal: core.tokens.title(caller.realm.principal),
            door: caller.door,
            request_bytes: outgoing.params.as_ref().map_or(0, length),
            waited: Duration::ZERO,
            waiting: None,
            finished: caller.origin == Origin::Page,
        }
    }

    /// Starts the clock of a wait for a person or the client.
    pub(super) fn begin_wait(&mut self) {
        self.waiting.get_or_insert_with(Instant::now);
    }

    /// Stops that clock: there is no open question any more.
    pub(super) fn end_wait(&mut self) {
        if let Some(since) = self.waiting.take() {
            self.waited += since.elapsed();
        }
    }

    /// Discards the record: the request resumes a call that has one.
    pub(super) fn forget(mut self) {
        self.finished = true;
    }

    pub(super) fn finish(mut self, result: Result<Raw, Error>) -> Result<Raw, Error> {
        if self.finished {
            return result;
        }
        self.finished = true;
        match &result {
            Ok(result) if says_error(result) => {
                self.write(Outcome::ToolError, said(result), length(result));
            }
            Ok(result) => self.write(Outcome::Ok, None, length(result)),
            Err(failure) => {
                let message = scrub::excerpt(&failure.message(), ERROR_CHARS);
                self.write(failure.outcome(), Some(message.into()), 0);
            }
        }
        result
    }

    fn write(&mut self, outcome: Outcome, error: Option<Arc<str>>, response_bytes: u64) {
        self.end_wait();
        let duration = self.started.elapsed();
        let waited = self.waited.min(duration);
        self.upstream.meter.count(
            outcome.kind(),
            duration.saturating_sub(waited),
            self.request_bytes,
            response_bytes,
        );
        self.core.store.record(Activity {
            id: 0,
            at: self.at,
            server: Arc::clone(&self.upstream.name),
            method: self.core.method(&self.method),
            name: Arc::clone(&self.name),
            client: Arc::clone(&self.client),
            principal: Arc::clone(&self.principal),
            door: self.door.into(),
            duration,
            waited,
            outcome,
            error,
            request_bytes: self.request_bytes,
            response_bytes,
        });
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if !self.finished {
            self.write(Outcome::Cancelled, None, 0);
        }
    }
}

fn length(raw: &Raw) -> u64 {
    raw.as_bytes().len() as u64
}

/// Tests if the result of a tool says that it failed. A result that does not contain the name
/// `isError` is not parsed at all.
fn says_error(result: &Raw) -> bool {
    static IS_ERROR: Name = Name::new("isError");
    result.may_name(&IS_ERROR)
        && result
            .member("isError")
            .is_some_and(|says| says.as_bytes() == b"true")
}

/// The text of a failed tool result: its text blocks, without secrets, and cut.
fn said(result: &Raw) -> Option<Arc<str>> {
    let mut text = String::new();
    for block in result.member("content")?.elements()? {
        let Some(said) = block.member("text").and_then(|text| text.to_text()) else {
            continue;
        };
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&said);
        if text.len() > scrub::excerpt_bytes(ERROR_CHARS) {
            break;
        }
    }
    let text = text.trim();
    (!text.is_empty()).then(|| scrub::excerpt(text, ERROR_CHARS).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_error_text_is_scrubbed_and_cut() {
        let said = |json: String| said(&Raw::parse(json).unwrap());
        let long = "x".repeat(10_000);
        let text = said(format!(
            r#"{{"isError":true,"content":[{{"type":"image","data":""}},{{"type":"text","text":" no key postgres://ann:hunter2-hunter2@db/x "}},{{"type":"text","text":"{long}"}}]}}"#
        ));
        let text = text.unwrap();
        assert!(text.starts_with("no key postgres://"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
        assert_eq!(text.chars().count(), ERROR_CHARS + 1);
        assert!(text.ends_with('…'));
        for silent in [
            r#"{"isError":true}"#,
            r#"{"isError":true,"content":[]}"#,
            r#"{"isError":true,"content":"x"}"#,
        ] {
            assert_eq!(said(silent.to_owned()), None);
        }
    }

    #[test]
    fn escaped_error_mark_is_read() {
        assert!(says_error(&Raw::parse(r#"{"is\u0045rror":true}"#).unwrap()));
        assert!(!says_error(
            &Raw::parse(r#"{"is\u0045rror":false}"#).unwrap()
        ));
    }
}
