//! What is written down of a call, however it ends.

use std::{
    borrow::Cow,
    sync::Arc,
    time::{Instant, SystemTime},
};

use switchboard_client::Raw;
use switchboard_store::{Activity, Outcome};
use switchboard_wire::Name;

use super::Errand;
use crate::{caller::Caller, context::Context, failure::Failure, upstream::Upstream};

#[derive(Debug)]
pub(super) struct Record {
    context: Arc<Context>,
    upstream: Arc<Upstream>,
    pub(super) started: Instant,
    at: SystemTime,
    method: Cow<'static, str>,
    name: Arc<str>,
    client: Arc<str>,
    request_bytes: u64,
    finished: bool,
}

impl Record {
    pub(super) fn new(
        context: &Arc<Context>,
        caller: &Caller,
        upstream: &Arc<Upstream>,
        errand: &Errand<'_>,
    ) -> Self {
        Self {
            context: Arc::clone(context),
            upstream: Arc::clone(upstream),
            started: Instant::now(),
            at: SystemTime::now(),
            method: errand.method.clone(),
            name: Arc::clone(&errand.name),
            client: Arc::clone(&caller.client),
            request_bytes: errand.params.as_ref().map_or(0, length),
            finished: false,
        }
    }

    /// There was no call of its own.
    pub(super) fn forget(mut self) {
        self.finished = true;
    }

    pub(super) fn finish(mut self, result: Result<Raw, Failure>) -> Result<Raw, Failure> {
        self.finished = true;
        match &result {
            Ok(result) => {
                let outcome = if says_error(result) {
                    Outcome::ToolError
                } else {
                    Outcome::Ok
                };
                self.write(outcome, None, length(result));
            }
            Err(failure) => self.write(failure.outcome(), Some(failure.message()), 0),
        }
        result
    }

    fn write(&self, outcome: Outcome, error: Option<Arc<str>>, response_bytes: u64) {
        let duration = self.started.elapsed();
        self.upstream
            .meter
            .count(outcome.kind(), duration, self.request_bytes, response_bytes);
        self.context.store.record(Activity {
            id: 0,
            at: self.at,
            server: Arc::clone(&self.upstream.name),
            method: self.context.method(&self.method),
            name: Arc::clone(&self.name),
            client: Arc::clone(&self.client),
            duration,
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

/// Whether the result of a tool says that it failed. A result that does not have the words in it is
/// not read at all.
fn says_error(result: &Raw) -> bool {
    static IS_ERROR: Name = Name::new("isError");
    result.may_name(&IS_ERROR)
        && result
            .member("isError")
            .is_some_and(|says| says.as_bytes() == b"true")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_error_mark_is_read() {
        assert!(says_error(&Raw::parse(r#"{"is\u0045rror":true}"#).unwrap()));
        assert!(!says_error(
            &Raw::parse(r#"{"is\u0045rror":false}"#).unwrap()
        ));
    }
}
