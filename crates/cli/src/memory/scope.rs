//! The scope of memories, and the arguments of a tool.

use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::{Map, Value};

/// The scope of a memory. A memory with a scope is found by queries that name it, or that name none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Scope")]
pub(super) struct Scope {
    /// Name for memories that belong together, such as a project
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// User whom the memory is about
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// Agent that the memory belongs to
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Run or conversation that the memory belongs to
    #[arg(long, value_name = "ID")]
    run: Option<String>,
}

/// Checks that the memory can parse a time.
pub(super) fn time(text: &str) -> Result<String, String> {
    let given = text.trim();
    let is_time = given.parse::<jiff::Timestamp>().is_ok()
        || given.parse::<jiff::civil::DateTime>().is_ok()
        || given.parse::<jiff::civil::Date>().is_ok();
    if is_time {
        Ok(text.to_owned())
    } else {
        Err("expected a time such as 2026-07-28 or 2026-07-28T12:00:00Z".to_owned())
    }
}

/// The time that memories are selected by.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Time")]
pub(super) struct Times {
    /// Only memories that were valid at this time, such as 2026-07-28 or 2026-07-28T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = time)]
    as_of: Option<String>,
    /// Memories as they were known at this time
    #[arg(long, value_name = "TIME", value_parser = time)]
    known_at: Option<String>,
    /// Include memories that are no longer valid
    #[arg(long)]
    include_invalid: bool,
}

/// The kind of a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum MemoryType {
    /// An event
    Episodic,
    /// A fact
    Semantic,
    /// A way of doing something
    Procedural,
}

/// The arguments of a tool, without the options that were not given.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(transparent)]
pub(super) struct Wish(Map<String, Value>);

impl Wish {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn with<T: Into<Value>>(mut self, name: &str, value: Option<T>) -> Self {
        if let Some(value) = value {
            self.0.insert(name.to_owned(), value.into());
        }
        self
    }

    pub(super) fn within(self, scope: &Scope) -> Self {
        self.with("namespace", scope.namespace.as_deref())
            .with("user_id", scope.user.as_deref())
            .with("agent_id", scope.agent.as_deref())
            .with("run_id", scope.run.as_deref())
    }

    pub(super) fn at(self, times: &Times) -> Self {
        self.with("as_of", times.as_of.as_deref())
            .with("known_at", times.known_at.as_deref())
            .with("include_invalid", times.include_invalid.then_some(true))
    }

    pub(super) fn of_type(self, kind: Option<MemoryType>) -> Self {
        let kind = kind.map(|kind| match kind {
            MemoryType::Episodic => "episodic",
            MemoryType::Semantic => "semantic",
            MemoryType::Procedural => "procedural",
        });
        self.with("memory_type", kind)
    }
}
