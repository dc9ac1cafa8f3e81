//! Hands what a server says of a call to whoever asked for it: progress under the client's own
//! token, log messages of the level it wants.

use std::{sync::Arc, time::Instant};

use parking_lot::Mutex;
use switchboard_base::{backchannel::Backchannel, caller::Logs};
use switchboard_client::{Raw, Revision};
use switchboard_wire::{Era, meta, method};

/// The receiver of progress and log messages of one call. A call that outlives its request (one that is suspended) changes it.
#[derive(Debug)]
pub(crate) struct Relay(Mutex<Listener>);

#[derive(Debug)]
struct Listener {
    backchannel: Option<Backchannel>,
    token: Option<Raw>,
    logs: Logs,
    told: Option<Arc<LastProgress>>,
    grows: bool,
    /// When the server last reported progress.
    heard: Option<Instant>,
}

/// The progress that a client was last told of. It has to grow, even where a request is repeated, and even
/// where signs of life come in between.
#[derive(Debug, Default)]
pub(crate) struct LastProgress(Mutex<Counted>);

#[derive(Debug)]
struct Counted {
    last: f64,
    /// Whether the gateway has counted, too.
    signs: bool,
}

impl Default for Counted {
    fn default() -> Self {
        Self {
            last: f64::NEG_INFINITY,
            signs: false,
        }
    }
}

impl LastProgress {
    /// So little is added by a sign of life.
    const SIGN: f64 = 1e-6;

    /// The progress to show as a sign of life; `None` if there is no larger number.
    pub(crate) fn sign(&self) -> Option<f64> {
        let mut told = self.0.lock();
        told.signs = true;
        let last = told.last.max(0.0);
        let next = (last + Self::SIGN).max(last.next_up());
        if next.is_finite() {
            told.last = next;
        }
        next.is_finite().then_some(next)
    }

    /// Whether a report of the server may be handed on.
    fn admit(&self, params: &Raw, grows: bool) -> bool {
        let mut told = self.0.lock();
        let progress = params.member("progress").and_then(|n| n.read().ok());
        let progress: f64 = progress.unwrap_or(f64::NEG_INFINITY);
        let admitted = progress > told.last;
        if admitted {
            told.last = progress;
        }
        admitted || !(grows || told.signs)
    }
}

impl Relay {
    /// Tells this back channel. A server that is asked anew in each round (`upstream` is of 2026-07-28 and the
    /// client is not) may begin to count anew, which the client is spared.
    pub(crate) fn new(
        backchannel: Option<Backchannel>,
        token: Option<Raw>,
        told: Option<Arc<LastProgress>>,
        logs: Logs,
        client: Era,
        upstream: Revision,
    ) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Listener {
            backchannel,
            token,
            logs,
            told,
            heard: None,
            grows: client != upstream.era() && upstream.era() == Era::Modern,
        })))
    }

    /// Nobody hears, until somebody does again.
    pub(crate) fn hang_up(&self) {
        self.0.lock().backchannel = None;
    }

    /// The client is back, on another line.
    pub(crate) fn take_up(
        &self,
        backchannel: Option<Backchannel>,
        token: Option<Raw>,
        told: Option<Arc<LastProgress>>,
        logs: Logs,
    ) {
        let mut listener = self.0.lock();
        listener.backchannel = backchannel;
        listener.token = token;
        listener.told = told;
        listener.logs = logs;
    }

    /// When the server last reported progress.
    pub(crate) fn heard(&self) -> Option<Instant> {
        self.0.lock().heard
    }

    pub(crate) fn progress(&self, params: &Raw) {
        // To a client that ignores letter case, another token would be that of another request.
        if params.distinct_member(&[meta::PROGRESS_TOKEN]).is_err() {
            return;
        }
        let mut listener = self.0.lock();
        listener.heard = Some(Instant::now());
        if let Some(told) = &listener.told
            && !told.admit(params, listener.grows)
        {
            return;
        }
        if let (Some(backchannel), Some(token)) = (&listener.backchannel, &listener.token)
            && let Ok(params) = params.with_member(meta::PROGRESS_TOKEN, token)
        {
            backchannel.tell(method::PROGRESS, &params);
        }
    }

    pub(crate) fn log(&self, params: &Raw) {
        let listener = self.0.lock();
        if let Some(backchannel) = &listener.backchannel
            && listener.logs.wants(params)
        {
            backchannel.tell(method::LOG_MESSAGE, params);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_of_life_and_reports_grow_together_and_stay_numbers() {
        let told = LastProgress::default();
        let report = |progress: &str| {
            let params = format!(r#"{{"progress":{progress}}}"#);
            told.admit(&Raw::parse(params).unwrap(), false)
        };
        assert!(report("5"));
        let first = told.sign().unwrap();
        let second = told.sign().unwrap();
        assert!(5.0 < first && first < second && second < 6.0);
        // What the server says stands in the order of what was shown.
        assert!(!report("5") && report("6"));
        assert!(report("1e300"));
        assert!(told.sign().unwrap() > 1e300);
        assert!(report("1.7976931348623157e308"));
        assert_eq!(told.sign(), None);
    }
}
