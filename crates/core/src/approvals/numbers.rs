//! Counters of approval requests.

use std::{
    fmt::Write,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use switchboard_approvals::{Record, Status, broker::Change};

/// Counts of approval requests since the gateway started.
#[derive(Debug, Default)]
pub struct Numbers {
    asked: AtomicU64,
    ended: [AtomicU64; Status::ALL.len()],
    /// Number of decisions, and the total time that they took, in milliseconds.
    decided: AtomicU64,
    thought: AtomicU64,
    waiting: AtomicU64,
}

impl Numbers {
    /// Counts a change of a request.
    pub(super) fn count(&self, why: Change, record: &Record) {
        if why == Change::Created {
            self.asked.fetch_add(1, Relaxed);
        }
        if let (Change::Decided, Some(decided)) = (why, &record.decided) {
            self.decided.fetch_add(1, Relaxed);
            let thought = decided.at.saturating_sub(record.created);
            self.thought.fetch_add(thought, Relaxed);
        }
        let over =
            !record.status.is_open() && !matches!(why, Change::Delivered | Change::Forgotten);
        let place = Status::ALL
            .iter()
            .position(|status| *status == record.status);
        if let Some(place) = place.filter(|_| over) {
            self.ended[place].fetch_add(1, Relaxed);
        }
    }

    /// Sets the number of requests that wait for a person.
    pub(super) fn set_waiting(&self, waiting: usize) {
        self.waiting.store(waiting as u64, Relaxed);
    }

    /// Number of requests that wait for a person.
    pub fn waiting(&self) -> u64 {
        self.waiting.load(Relaxed)
    }

    /// Renders the counters in the Prometheus text format.
    pub fn render(&self) -> String {
        let mut text = String::new();
        let mut head = |name: &str, kind: &str, help: &str, values: &[(String, f64)]| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (labels, value) in values {
                let _ = writeln!(text, "{name}{labels} {value}");
            }
        };
        #[allow(clippy::cast_precision_loss)] // Counts stay far below 2^53.
        let number = |of: &AtomicU64| of.load(Relaxed) as f64;
        let plain = |value| [(String::new(), value)];
        head(
            "switchboard_approvals_asked_total",
            "counter",
            "Approval requests created.",
            &plain(number(&self.asked)),
        );
        let ended: Vec<_> = Status::ALL
            .iter()
            .zip(&self.ended)
            .filter(|(status, _)| !status.is_open())
            .map(|(status, count)| (format!("{{status=\"{status}\"}}"), number(count)))
            .collect();
        head(
            "switchboard_approvals_ended_total",
            "counter",
            "Approval requests closed, by status.",
            &ended,
        );
        head(
            "switchboard_approvals_decided_total",
            "counter",
            "Decisions made by approvers.",
            &plain(number(&self.decided)),
        );
        head(
            "switchboard_approvals_thought_seconds_total",
            "counter",
            "Total time that approvers took to decide, in seconds.",
            &plain(number(&self.thought) / 1_000.0),
        );
        head(
            "switchboard_approvals_waiting",
            "gauge",
            "Pending approval requests.",
            &plain(number(&self.waiting)),
        );
        text
    }
}
