//! How far something has come, for a person who waits.

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::{Duration, Instant},
};

use switchboard_terminal::print;

/// Work that takes less is not talked about, and more often than this nobody reads.
const OFTEN: Duration = Duration::from_millis(200);

/// How wide a terminal is that does not say it.
const NARROW: usize = 80;

/// One line on a terminal, which goes when the work is done. In a pipe there is none.
#[derive(Debug)]
pub(super) struct Progress {
    last: Instant,
    is_shown: bool,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self {
            last: Instant::now(),
            is_shown: false,
        }
    }

    pub(super) fn show(&mut self, text: &str) {
        if self.last.elapsed() < OFTEN || !io::stderr().is_terminal() {
            return;
        }
        (self.last, self.is_shown) = (Instant::now(), true);
        let mut to = io::stderr();
        // A line that is folded could not be taken away, and servers have a say in some.
        let width = print::terminal_width(&to).unwrap_or(NARROW);
        let text: String = text.chars().take(width - 1).collect();
        // Nobody is hurt if it is not seen.
        let _ = write!(to, "\r\u{1b}[K{text}").and_then(|()| to.flush());
    }

    /// Takes the line away, so that another can stand there.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            let _ = write!(io::stderr(), "\r\u{1b}[K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
