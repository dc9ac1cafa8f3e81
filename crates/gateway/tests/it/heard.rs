//! Captures the program's log for tests.

use std::{
    fmt::{Debug, Write},
    sync::{Mutex, Once},
};

use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

static HEARD: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Ears;

/// Starts to capture the log of the whole process.
pub(crate) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Ears).unwrap());
}

/// Tests if a warning or an error was logged that contains all these words.
pub(crate) fn warned(words: &[&str]) -> bool {
    let heard = HEARD.lock().unwrap();
    let mut lines = heard.iter();
    lines.any(|line| words.iter().all(|word| line.contains(word)))
}

impl Subscriber for Ears {
    fn enabled(&self, about: &Metadata<'_>) -> bool {
        *about.level() <= Level::WARN
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        HEARD.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string does not fail.
        let _ = write!(self.0, "{field}={value:?} ");
    }
}
