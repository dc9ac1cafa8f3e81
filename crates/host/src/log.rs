//! The gateway's own log on standard error.
//!
//! A client may start the gateway and never read its standard error, so a thread writes the lines:
//! a full pipe blocks that thread and nothing else. Lines that do not fit into the queue are
//! counted, and the count is written once there is room.

use std::{
    io::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use tracing::{Metadata, level_filters::LevelFilter};
use tracing_subscriber::{
    filter::filter_fn, fmt::MakeWriter, layer::Layer as _, layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

/// The most lines in the queue.
const LINES: usize = 512;
/// The longest line, in bytes. It may contain text from a server.
const LINE_BYTES: usize = 4 * 1024;
/// The time to write the last lines before the process ends.
const LAST_LINES: Duration = Duration::from_millis(100);

/// Writes the log to standard error until this is dropped.
#[must_use]
pub(crate) struct Log(SyncSender<Order>);

enum Order {
    Line(String),
    Flush(SyncSender<()>),
}

/// Starts to write the log to standard error.
pub(crate) fn to_stderr(level: LevelFilter) -> io::Result<Log> {
    let (orders, taken) = sync_channel(LINES);
    let missed = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&missed);
    thread::Builder::new()
        .name("stderr".to_owned())
        .spawn(move || write_all(&taken, &counted, Stderr))?;
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(Lines {
            orders: orders.clone(),
            missed,
        })
        .with_ansi(false)
        .with_target(false);
    let wanted = filter_fn(move |about| is_wanted(about, level)).with_max_level_hint(level);
    tracing_subscriber::registry()
        .with(lines.with_filter(wanted))
        .init();
    Ok(Log(orders))
}

impl Drop for Log {
    fn drop(&mut self) {
        let (done, flushed) = sync_channel(1);
        if self.0.try_send(Order::Flush(done)).is_ok() {
            // Do not wait for a reader that has stalled.
            let _ = flushed.recv_timeout(LAST_LINES);
        }
    }
}

/// Tests if an event or span is logged. Every step of a connection is for debugging only; so are
/// the messages of libraries, unless they are warnings. Spans are kept, because they name the
/// server of a warning inside.
fn is_wanted(about: &Metadata<'_>, level: LevelFilter) -> bool {
    let most = if !about.target().starts_with("switchboard") && level < LevelFilter::TRACE {
        level.min(LevelFilter::WARN)
    } else {
        level
    };
    let detail = about.is_event() && about.name() == "connection.transition";
    *about.level() <= most && (!detail || level >= LevelFilter::DEBUG)
}

/// Receives lines from the subscriber, which writes a whole line at a time.
#[derive(Clone)]
struct Lines {
    orders: SyncSender<Order>,
    missed: Arc<AtomicU64>,
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let order = Order::Line(one_line(&switchboard_base::scrub::text(&text)));
        if self.orders.try_send(order).is_err() {
            self.missed.fetch_add(1, Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The text as one line of limited length without control characters, since servers contribute to
/// it.
fn one_line(text: &str) -> String {
    let text = text.trim_end();
    let end = text.floor_char_boundary(LINE_BYTES);
    let mut line = String::with_capacity(end + 1);
    for c in text[..end].chars() {
        if c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    if end < text.len() {
        line.push('…');
    }
    line.push('\n');
    line
}

/// The body of the thread: writes until all senders are gone.
fn write_all(orders: &Receiver<Order>, missed: &AtomicU64, mut to: impl Write) {
    while let Ok(order) = orders.recv() {
        // It is no error if the output is not read.
        let _ = match order {
            Order::Line(line) => to.write_all(line.as_bytes()),
            Order::Flush(done) => {
                let _ = done.try_send(());
                Ok(())
            }
        };
        let count = missed.swap(0, Relaxed);
        if count > 0 {
            let _ = writeln!(to, "(lines dropped because the log was not read: {count})");
        }
    }
}

/// Standard error without the lock of the standard library. A stalled write would hold that lock
/// and block the last messages of the program.
struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(rustix::stdio::stderr(), bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Parses a log level from the command line.
pub fn level(text: &str) -> Result<LevelFilter, String> {
    let level = text.parse();
    level.map_err(|_| "expected off, error, warn, info, debug or trace".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_short_and_has_no_control_characters() {
        let line = one_line("WARN \u{1b}[31mred\nERROR forged\n");
        assert_eq!(line, "WARN \\u{1b}[31mred\\nERROR forged\n");
        let long = one_line(&"ä".repeat(LINE_BYTES));
        assert!(long.ends_with("…\n") && long.len() < LINE_BYTES + 8);
    }

    #[test]
    fn lines_beyond_the_queue_are_counted() {
        let (orders, taken) = sync_channel(2);
        let missed = Arc::new(AtomicU64::new(0));
        let mut lines = Lines {
            orders: orders.clone(),
            missed: Arc::clone(&missed),
        };
        for n in 0..5 {
            lines.write_all(format!("line {n}\n").as_bytes()).unwrap();
        }
        drop((orders, lines));
        let mut written = Vec::new();
        write_all(&taken, &missed, &mut written);
        let written = String::from_utf8(written).unwrap();
        assert_eq!(
            written,
            "line 0\n(lines dropped because the log was not read: 3)\nline 1\n"
        );
    }
}
