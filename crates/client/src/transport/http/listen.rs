//! The stream on which a server of an older revision sends messages that belong to no request.

use std::{
    future::Future,
    hash::{BuildHasher, RandomState},
    pin::pin,
    time::{Duration, Instant},
};

use reqwest::StatusCode;
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use super::{
    super::TransportEvent,
    EventStream,
    body::{Next, Resume, WORTHWHILE, answered, is_event_stream, message},
    peer::{Deaf, Peer, Report, is_transient},
    post::Gate,
};

/// The longest delay between two attempts.
const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// The most attempts to open a stream that never existed.
const ATTEMPTS: u32 = 5;

/// Time for which requests wait for the stream. A server may send a request on it in the middle of
/// a call, so it should be open first; but some servers do not respond before they have something
/// to send.
const HEAD_START: Duration = Duration::from_millis(500);

/// Keeps the stream open for as long as the server offers one, once the session is `confirmed`.
/// Dropping `hold` releases the messages that wait for the stream.
pub(super) async fn listen(peer: Peer, mut confirmed: Gate, hold: watch::Sender<()>) {
    // The value never changes: the gate opens with an error.
    let _ = confirmed.changed().await;
    let listener = Listener {
        peer,
        resume: Resume::default(),
        failures: 0,
        opened: false,
        hold: Some(hold),
    };
    // It ends the same way if the transport is gone.
    let _ = listener.run().await;
}

struct Listener {
    peer: Peer,
    resume: Resume,
    failures: u32,
    opened: bool,
    hold: Option<watch::Sender<()>>,
}

impl Listener {
    async fn run(mut self) -> Result<(), Deaf> {
        loop {
            let since = Instant::now();
            let asked = self.peer.get(self.resume.last.as_ref());
            match holding(self.hold.take(), asked).await {
                Ok(response) if is_event_stream(&response) => {
                    self.opened = true;
                    let useful = self
                        .read(EventStream::new(response, self.peer.endpoint.limit))
                        .await?;
                    self.failures = if useful {
                        0
                    } else {
                        self.failures.saturating_add(1)
                    };
                }
                Ok(response) if self.lost_session(response.status()) => {
                    return self.peer.session_gone().await;
                }
                Ok(response) if !is_transient(response.status()) => {
                    let status = response.status().as_u16();
                    tracing::debug!(target: "switchboard::transport", status, "The server offers no event stream.");
                    return Ok(());
                }
                Ok(_) | Err(_) => self.failures = self.failures.saturating_add(1),
            }
            if !self.opened && self.failures >= ATTEMPTS {
                return Ok(());
            }
            sleep(delay(
                self.resume.delay(since.elapsed()),
                self.failures,
                RandomState::new().hash_one(()),
            ))
            .await;
        }
    }

    /// Reads a stream to its end. Returns `true` if it was of any use.
    async fn read(&mut self, mut events: EventStream) -> Result<bool, Deaf> {
        let since = Instant::now();
        let before = self.resume.events;
        loop {
            match events.next().await {
                Next::Event(event) => {
                    self.resume.note(&event);
                    if let Some(frame) = message(event) {
                        let answered = answered(&frame);
                        self.peer.report(Report::Frame { frame, answered }).await?;
                    }
                }
                Next::TooLarge { limit } => {
                    self.peer
                        .event(TransportEvent::FrameTooLarge { limit })
                        .await?;
                }
                Next::End(_) => {
                    return Ok(self.resume.events > before || since.elapsed() >= WORTHWHILE);
                }
            }
        }
    }

    /// Returns `true` if the session is gone. A server that never had a stream responds with the
    /// same status, so it counts only after there was one. Many servers respond with 400 instead of
    /// 404.
    fn lost_session(&self, status: StatusCode) -> bool {
        matches!(status, StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST)
            && self.opened
            && self.peer.standing.session.is_some()
    }
}

/// Waits for the response, and keeps `hold` for a limited time.
async fn holding<T>(hold: Option<watch::Sender<()>>, answer: impl Future<Output = T>) -> T {
    let mut answer = pin!(answer);
    if let Ok(answer) = timeout(HEAD_START, &mut answer).await {
        return answer;
    }
    drop(hold);
    answer.await
}

/// Returns the delay before the next attempt: the one that the server asks for, doubled with each
/// failure up to [`BACKOFF_MAX`], plus up to a fifth, so that clients do not all reconnect at the
/// same time.
fn delay(asked: Duration, failures: u32, random: u64) -> Duration {
    let doubled = asked
        .saturating_mul(2_u32.saturating_pow(failures))
        .min(BACKOFF_MAX);
    let wait = doubled.max(asked);
    let jitter = u32::try_from(random % 200).unwrap_or_default();
    wait.saturating_add((wait / 1_000).saturating_mul(jitter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_doubles_and_never_undercuts_the_server() {
        let second = Duration::from_secs(1);
        for (asked, failures, expected) in [
            (second, 0, second),
            (second, 1, 2 * second),
            (second, 3, 8 * second),
            (second, 5, 30 * second),
            (second, u32::MAX, 30 * second),
            (40 * second, 2, 40 * second),
            (Duration::MAX, 9, Duration::MAX),
        ] {
            assert_eq!(delay(asked, failures, 0), expected);
            let jittered = delay(asked, failures, 199);
            assert!(jittered >= expected && jittered <= expected.saturating_add(expected / 5));
        }
    }
}
