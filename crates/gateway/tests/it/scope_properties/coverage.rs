//! Counters of what the random worlds have reached, so that no check is skipped unnoticed.

use std::collections::BTreeMap;

use super::{USUAL, seed};

#[derive(Default)]
pub(super) struct Coverage(BTreeMap<String, usize>);

impl Coverage {
    pub(super) fn note(&mut self, what: impl Into<String>) {
        *self.0.entry(what.into()).or_default() += 1;
    }

    /// Counts something if it is so.
    pub(super) fn note_if(&mut self, is_so: bool, what: &str) {
        if is_so {
            self.note(what);
        }
    }

    /// Prints the counters, and checks that none of these is zero.
    #[expect(
        clippy::print_stdout,
        reason = "a developer may ask for it with --no-capture"
    )]
    pub(super) fn require(&self, wanted: impl IntoIterator<Item = String>) {
        for (what, count) in &self.0 {
            println!("{count:5} {what}");
        }
        let missing = wanted.into_iter();
        let missing: Vec<_> = missing.filter(|what| !self.0.contains_key(what)).collect();
        if seed() == USUAL {
            assert_eq!(missing, Vec::<String>::new(), "not reached");
        }
    }
}
