//! A progress line for a waiting user.

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::{Duration, Instant},
};

use switchboard_terminal::print;

/// The least time between two updates, and before the first one.
const OFTEN: Duration = Duration::from_millis(200);

/// The width assumed for a terminal that does not report one.
const NARROW: usize = 80;

/// One line on a terminal, which is removed when the work is done. A pipe gets no such line.
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
        // A wrapped line could not be removed, and servers choose the text of some.
        let width = print::terminal_width(&to).unwrap_or(NARROW);
        let text: String = text.chars().take(width - 1).collect();
        // It does no harm if the line is not printed.
        let _ = write!(to, "\r\u{1b}[K{text}").and_then(|()| to.flush());
    }

    /// Removes the line, so that another can be printed.
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
