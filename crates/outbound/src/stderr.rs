//! Standard error of servers: read as fast as a server writes, and logged at a bounded rate.
//!
//! Lines beyond a server's quota are counted and dropped, and the log reports their number. The last lines
//! are always remembered, because one of them usually explains the end of a server.

mod telling;

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use switchboard_base::scrub;
use switchboard_client::Violation;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    time::{sleep, timeout_at},
};

use crate::{
    clock,
    logs::{LINE_BYTES, Logs},
};

/// The most bytes that a server may add to its log at once.
const BURST: u64 = 256 * 1024;
/// The bytes per second after the burst: together less than 1 MB in any minute.
const PER_SECOND: u64 = 8 * 1024;
/// Interval between two reports of dropped lines.
const REPORT_EVERY: Duration = Duration::from_secs(10);
/// Room for the timestamp and the end of a line in the log, in bytes.
const LINE_OVERHEAD: usize = 32;
/// Bytes read at once.
const CHUNK: usize = 16 * 1024;
/// The pause after a read of which lines were dropped. It limits reading to 16 MB/s, at little cost.
const PAUSE: Duration = Duration::from_millis(1);
/// The number of last lines that are remembered, and the bytes of each. The reason for an end often precedes
/// a stack trace.
const LAST_WORDS: usize = 40;
const LAST_WORDS_BYTES: usize = 200;
/// The number of last lines that are shown if none looks like a reason, and that are remembered of dropped
/// lines.
const TOLD: usize = 5;

/// The last lines that a server wrote to standard error, without known secrets.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastWords(Arc<Mutex<VecDeque<String>>>);

impl LastWords {
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }

    pub(crate) fn add(&self, line: &str) {
        // Scrubbed before it is cut: half of a secret would not be found.
        let line = scrub::text(line);
        let line = line[..line.floor_char_boundary(LAST_WORDS_BYTES)].to_owned();
        let mut lines = self.0.lock();
        if lines.len() == LAST_WORDS {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// The line that explains the end of the server and the lines that belong to it, or else the last few
    /// lines; `None` if there are none.
    pub(crate) fn told(&self) -> Option<String> {
        let lines = self.0.lock();
        let all: Vec<_> = lines.iter().map(String::as_str).collect();
        let told = telling::telling(&all).unwrap_or_else(|| {
            let said = all.iter().filter(|line| telling::says_something(line));
            let mut last: Vec<_> = said.rev().take(TOLD).copied().collect();
            last.reverse();
            last
        });
        (!told.is_empty()).then(|| told.join(" | "))
    }

    /// The same after the server's refusal, or after text on standard output that is not a message.
    pub(crate) fn told_after(&self, wrote: Option<&str>) -> Option<String> {
        match (wrote, self.told()) {
            (Some(wrote), Some(last)) => Some(format!("{wrote} | {last}")),
            (Some(wrote), None) => Some(wrote.to_owned()),
            (None, last) => last,
        }
    }
}

/// The rate at which one server may add to its log: a token bucket without a clock.
#[derive(Debug, Default)]
pub(crate) struct Quota {
    /// Time at which the bucket is full again.
    full_at: Option<Instant>,
    dropped: Option<Dropped>,
}

/// Lines that were not logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dropped {
    since: Instant,
    lines: u64,
    bytes: u64,
}

impl Quota {
    const SIZE: Duration = cost(BURST);

    /// Takes room for this many bytes. Returns `false`, and takes nothing, if there is too little.
    fn take(&mut self, now: Instant, bytes: usize) -> bool {
        let full_at = self.full_at.unwrap_or(now).max(now) + cost(bytes as u64);
        let fits = full_at.duration_since(now) <= Self::SIZE;
        if fits {
            self.full_at = Some(full_at);
        }
        fits
    }

    /// Takes room for a line. Returns `false`, and takes nothing, if there is too little.
    pub(crate) fn take_line(&mut self, now: Instant, length: usize) -> bool {
        self.take(now, length.min(LINE_BYTES) + LINE_OVERHEAD)
    }

    fn drop_lines(&mut self, now: Instant, lines: u64, bytes: u64) {
        let dropped = self.dropped.get_or_insert(Dropped {
            since: now,
            lines: 0,
            bytes: 0,
        });
        dropped.lines = dropped.lines.saturating_add(lines);
        dropped.bytes = dropped.bytes.saturating_add(bytes);
    }

    /// Time at which dropped lines are to be reported.
    fn due(&self) -> Option<Instant> {
        self.dropped.map(|dropped| dropped.since + REPORT_EVERY)
    }

    /// Reports the lines that were dropped since the last report.
    fn report(&mut self, now: Instant) -> Option<String> {
        let dropped = self.dropped.take()?;
        let took = now.duration_since(dropped.since).as_secs().max(1);
        Some(format!(
            "dropped lines: {} ({}) in {took} s",
            thousands(dropped.lines),
            size(dropped.bytes)
        ))
    }

    /// Tests if it is in the same state as a new one.
    pub(crate) fn is_unused(&self, now: Instant) -> bool {
        self.dropped.is_none() && self.full_at.is_none_or(|full_at| full_at <= now)
    }
}

/// The time in which this many bytes are refilled.
const fn cost(bytes: u64) -> Duration {
    Duration::from_nanos(bytes.saturating_mul(1_000_000_000 / PER_SECOND))
}

/// `12,345`.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `3.2 MB`.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{}.{} kB", bytes / 1_000, bytes % 1_000 / 100),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

/// The most bytes of a frame that are shown.
const SAMPLE_BYTES: usize = 200;

/// A protocol violation in words, for the server's log.
pub(crate) fn words(violation: &Violation<'_>) -> String {
    match violation {
        Violation::Frame {
            reason,
            frame: Some(frame),
            ..
        } => {
            let sample = String::from_utf8_lossy(&frame[..frame.len().min(SAMPLE_BYTES)]);
            format!("dropped a line that is not JSON-RPC ({reason}): {sample}")
        }
        Violation::Frame { reason, .. } => format!("violated the protocol: {reason}"),
        Violation::More { count, bytes, .. } => format!(
            "dropped more lines that are not JSON-RPC: {} ({})",
            thousands(*count),
            size(*bytes)
        ),
        _ => "violated the protocol".to_owned(),
    }
}

/// Splits input into lines. A line that is longer than the buffer is cut.
#[derive(Debug)]
struct Lines {
    buffer: Box<[u8]>,
    filled: usize,
    /// The rest of a line that was already cut is being skipped.
    skipping: bool,
}

impl Lines {
    fn new() -> Self {
        Self {
            buffer: vec![0; CHUNK].into(),
            filled: 0,
            skipping: false,
        }
    }

    /// The free part of the buffer, which is never empty.
    fn room(&mut self) -> &mut [u8] {
        &mut self.buffer[self.filled..]
    }

    /// Takes in this many bytes. Returns the length of the complete lines.
    fn filled(&mut self, bytes: usize) -> usize {
        self.filled += bytes;
        if self.skipping {
            match memchr::memchr(b'\n', &self.buffer[..self.filled]) {
                Some(at) => {
                    self.skipping = false;
                    self.consume(at + 1);
                }
                None => self.filled = 0,
            }
        }
        match memchr::memrchr(b'\n', &self.buffer[..self.filled]) {
            Some(at) => at + 1,
            None if self.filled == self.buffer.len() => {
                self.skipping = true;
                self.filled
            }
            None => 0,
        }
    }

    fn consume(&mut self, bytes: usize) {
        self.buffer.copy_within(bytes..self.filled, 0);
        self.filled -= bytes;
    }
}

/// The first line, and the rest.
fn split(lines: &[u8]) -> Option<(&[u8], &[u8])> {
    if lines.is_empty() {
        return None;
    }
    let (line, rest) = match memchr::memchr(b'\n', lines) {
        Some(at) => (&lines[..at], &lines[at + 1..]),
        None => (lines, &lines[lines.len()..]),
    };
    Some((line.strip_suffix(b"\r").unwrap_or(line), rest))
}

/// The last few of these lines.
fn last_of(lines: &[u8]) -> &[u8] {
    let whole = lines.strip_suffix(b"\n").unwrap_or(lines);
    let mut ends = memchr::memrchr_iter(b'\n', whole);
    ends.nth(TOLD - 1).map_or(lines, |at| &lines[at + 1..])
}

/// Reads until the server has closed its standard error.
pub(crate) async fn listen(
    mut stderr: impl AsyncRead + Unpin,
    server: Arc<str>,
    logs: Arc<Logs>,
    last: LastWords,
) {
    let quota = logs.quota(&server);
    let mut lines = Lines::new();
    loop {
        let due = quota.lock().due();
        let reading = stderr.read(lines.room());
        let read = match due {
            Some(due) => timeout_at(due.into(), reading).await.ok(),
            None => Some(reading.await),
        };
        let (complete, ended) = match read {
            None => (0, false),
            Some(Ok(read)) if read > 0 => (lines.filled(read), false),
            Some(_) => (lines.filled, true),
        };
        let now = clock::now();
        let dropped = keep(
            &lines.buffer[..complete],
            now,
            &server,
            &logs,
            &quota,
            &last,
        );
        lines.consume(complete);
        if ended || due.is_some_and(|due| due <= now) {
            let report = quota.lock().report(now);
            if let Some(report) = report {
                logs.note(&server, &report);
            }
        }
        if ended {
            return;
        }
        if dropped {
            sleep(PAUSE).await;
        }
    }
}

/// Writes these lines to the log, within the quota. Returns `true` if some were dropped.
fn keep(
    lines: &[u8],
    now: Instant,
    server: &Arc<str>,
    logs: &Logs,
    quota: &Mutex<Quota>,
    last: &LastWords,
) -> bool {
    let mut rest = lines;
    while let Some((line, after)) = split(rest) {
        if !quota.lock().take_line(now, line.len()) {
            break;
        }
        let line = String::from_utf8_lossy(line);
        logs.line(server, &line);
        last.add(&line);
        rest = after;
    }
    if rest.is_empty() {
        return false;
    }
    let count = memchr::memchr_iter(b'\n', rest).count().max(1);
    quota
        .lock()
        .drop_lines(now, count as u64, rest.len() as u64);
    let mut newest = last_of(rest);
    while let Some((line, after)) = split(newest) {
        let line = &line[..line.len().min(LINE_BYTES)];
        last.add(&String::from_utf8_lossy(line));
        newest = after;
    }
    true
}

#[cfg(test)]
mod tests {
    use switchboard_config::Home;
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[test]
    fn flood_adds_under_a_megabyte_per_minute() {
        let began = Instant::now();
        let mut quota = Quota::default();
        let mut kept = 0;
        for millis in 0..60_000 {
            let now = began + Duration::from_millis(millis);
            for _ in 0..10 {
                if quota.take(now, 120) {
                    kept += 120;
                }
            }
        }
        assert!((700_000..1_000_000).contains(&kept), "{kept} bytes");
        // A pause restores the burst, and no more.
        let later = began + Duration::from_hours(1);
        let burst = (0..1_000).filter(|_| quota.take(later, 1_024)).count();
        assert_eq!(burst, 256);
    }

    #[test]
    fn dropped_lines_are_counted_until_reported() {
        let now = Instant::now();
        let mut quota = Quota::default();
        assert_eq!(quota.due(), None);
        quota.drop_lines(now, 12_000, 3_000_000);
        quota.drop_lines(now + Duration::from_secs(1), 345, 250_000);
        assert_eq!(quota.due(), Some(now + REPORT_EVERY));
        let report = quota.report(now + REPORT_EVERY).unwrap();
        assert_eq!(report, "dropped lines: 12,345 (3.2 MB) in 10 s");
        assert_eq!(quota.report(now + REPORT_EVERY), None);
        assert!(quota.is_unused(now));
    }

    fn home(folder: &std::path::Path) -> Arc<Home> {
        Arc::new(Home::locate(Some(folder), None).unwrap())
    }

    /// The log of a server that wrote this, and its last lines.
    async fn logged(written: Vec<u8>) -> (String, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let home = home(folder.path());
        let logs = Arc::new(Logs::new(Arc::clone(&home)));
        let (mut stderr, reading) = tokio::io::duplex(1 << 16);
        let last = LastWords::default();
        let writing = tokio::spawn(async move { stderr.write_all(&written).await.unwrap() });
        listen(reading, "a".into(), Arc::clone(&logs), last.clone()).await;
        writing.await.unwrap();
        logs.flush();
        let text = std::fs::read_to_string(home.log_of("a")).unwrap();
        let last = last.0.lock().iter().cloned().collect();
        (text, last)
    }

    #[tokio::test]
    async fn quiet_server_is_logged_verbatim() {
        let long = "x".repeat(3 * CHUNK);
        let text = format!("one\r\ntwo\n{long}\n\nthree");
        let (log, last) = logged(text.into_bytes()).await;
        let lines: Vec<&str> = log
            .lines()
            .map(|line| line.split_once(' ').unwrap().1)
            .collect();
        assert_eq!(lines[..2], ["one", "two"]);
        assert_eq!(lines[2], "x".repeat(LINE_BYTES));
        assert_eq!(lines[3..], ["", "three"]);
        assert_eq!(last.len(), 5);
        assert_eq!(last[4], "three");
        assert_eq!(last[2].len(), LAST_WORDS_BYTES);
    }

    #[tokio::test]
    async fn dropped_lines_of_a_noisy_server_are_reported() {
        const LINES: usize = 20_000;
        let lines: Vec<String> = (0..LINES)
            .map(|n| format!("{n:06} {}\n", "y".repeat(200)))
            .collect();
        let text = lines.concat();
        let (log, last) = logged(text.into_bytes()).await;
        assert!(log.len() < 400_000, "{} bytes", log.len());
        let report = log.lines().last().unwrap();
        assert!(report.contains("[switchboard] dropped "), "{report}");
        let kept = log.lines().count() - 1;
        let dropped = thousands((LINES - kept) as u64);
        assert!(
            report.contains(&format!("dropped lines: {dropped} (")),
            "{report}"
        );
        let newest: Vec<String> = (LINES - TOLD..LINES).map(|n| format!("{n:06}")).collect();
        let last = &last[last.len() - TOLD..];
        let last: Vec<&str> = last.iter().map(|line| &line[..6]).collect();
        assert_eq!(last, newest, "the last words are the newest lines");
    }
}
