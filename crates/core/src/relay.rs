//! Forwards a server's notifications about a call to its client: progress under the client's own
//! token, and log messages of the level that it wants.

use std::{sync::Arc, time::Instant};

use parking_lot::Mutex;
use switchboard_base::{backchannel::Backchannel, caller::Logs};
use switchboard_client::{LogMessage, Raw, Revision};
use switchboard_wire::{Era, meta, method};

/// The receiver of progress and log messages of one call. It is replaced when a suspended call,
/// which outlives its request, is resumed.
#[derive(Debug)]
pub(crate) struct Relay {
    listener: Mutex<Listener>,
    /// Log messages that do not name the call are forwarded as well. They may be about an earlier one.
    hears_unnamed: bool,
}

#[derive(Debug)]
struct Listener {
    backchannel: Option<Backchannel>,
    token: Option<Raw>,
    logs: Logs,
    told: Option<Arc<LastProgress>>,
    grows: bool,
    /// Time of the server's last progress report.
    heard: Option<Instant>,
}

/// The last progress reported to a client. Progress has to increase, even if the request is
/// repeated and signs of life come in between.
#[derive(Debug, Default)]
pub(crate) struct LastProgress(Mutex<Counted>);

#[derive(Debug)]
struct Counted {
    last: f64,
    /// The gateway has sent signs of life as well.
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
    /// The amount that a sign of life adds.
    const SIGN: f64 = 1e-6;

    /// The progress to report as a sign of life; `None` if there is no larger number.
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

    /// Tests if a report of the server may be forwarded.
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
    /// A relay to this back channel. A server that receives the request again in each round
    /// (`upstream` is of 2026-07-28 and the client is not) may restart its count; such reports are
    /// dropped.
    pub(crate) fn new(
        hears_unnamed: bool,
        backchannel: Option<Backchannel>,
        token: Option<Raw>,
        told: Option<Arc<LastProgress>>,
        logs: Logs,
        client: Era,
        upstream: Revision,
    ) -> Arc<Self> {
        let listener = Listener {
            backchannel,
            token,
            logs,
            told,
            heard: None,
            grows: client != upstream.era() && upstream.era() == Era::Modern,
        };
        Arc::new(Self {
            listener: Mutex::new(listener),
            hears_unnamed,
        })
    }

    /// Disconnects the client until [`Relay::take_up`].
    pub(crate) fn hang_up(&self) {
        self.listener.lock().backchannel = None;
    }

    /// Connects the client that came back, on another channel.
    pub(crate) fn take_up(
        &self,
        backchannel: Option<Backchannel>,
        token: Option<Raw>,
        told: Option<Arc<LastProgress>>,
        logs: Logs,
    ) {
        let mut listener = self.listener.lock();
        listener.backchannel = backchannel;
        listener.token = token;
        listener.told = told;
        listener.logs = logs;
    }

    /// Time of the server's last progress report.
    pub(crate) fn heard(&self) -> Option<Instant> {
        self.listener.lock().heard
    }

    pub(crate) fn progress(&self, params: &Raw) {
        // To a client that ignores letter case, another spelling could be the token of another
        // request.
        if params.distinct_member(&[meta::PROGRESS_TOKEN]).is_err() {
            return;
        }
        let mut listener = self.listener.lock();
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

    pub(crate) fn log(&self, message: &LogMessage) {
        let LogMessage {
            params, is_named, ..
        } = message;
        if !is_named && !self.hears_unnamed {
            return;
        }
        let listener = self.listener.lock();
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
    fn progress_increases_across_signs_of_life() {
        let told = LastProgress::default();
        let report = |progress: &str| {
            let params = format!(r#"{{"progress":{progress}}}"#);
            told.admit(&Raw::parse(params).unwrap(), false)
        };
        assert!(report("5"));
        let first = told.sign().unwrap();
        let second = told.sign().unwrap();
        assert!(5.0 < first && first < second && second < 6.0);
        // Reports of the server are ordered together with the signs of life.
        assert!(!report("5") && report("6"));
        assert!(report("1e300"));
        assert!(told.sign().unwrap() > 1e300);
        assert!(report("1.7976931348623157e308"));
        assert_eq!(told.sign(), None);
    }
}
