//! The checks that no gateway can pass between the eras.

/// A check that cannot pass.
#[derive(Debug)]
pub(crate) struct Bound {
    /// `scenario:check`.
    pub(crate) check: &'static str,
    /// The reason, shown if the check passes after all.
    #[allow(
        dead_code,
        reason = "it is read by people, in the message of a failed test"
    )]
    reason: &'static str,
}

const fn bound(check: &'static str, reason: &'static str) -> Bound {
    Bound { check, reason }
}

/// The tasks extension, none of which is required.
const NO_TASKS: &str = "a server of 2025-11-25 does not know the extension for tasks, so that its tools \
                        just run, and there is no task to ask for";

/// Clients of 2026-07-28 with a server of 2025-11-25. In the other direction there are no limits.
pub(crate) const NEW_TO_OLD: &[Bound] = &[
    bound(
        "input-required-result-basic-elicitation:sep-2322-elicitation-incomplete",
        "the suite knows by which key the question goes; a question of an older server has no key, and \
         the gateway has to make one up",
    ),
    bound(
        "input-required-result-ignore-extra-params:sep-2322-ignore-unexpected-params",
        "the suite answers before it is asked, under a key that a question of an older server does \
         not have",
    ),
    bound(
        "server-stateless:sep-2575-server-rejects-undeclared-capability",
        "a server of 2025-11-25 has no error for a capability that its client lacks, and says so in the \
         result of its tool, if it says so",
    ),
    bound(
        "server-stateless:sep-2575-missing-capability-http-400",
        "the status that goes with the error that a server of 2025-11-25 does not have",
    ),
    bound(
        "tasks-capability-negotiation:tasks-extension-advertised",
        NO_TASKS,
    ),
    bound(
        "tasks-capability-negotiation:tasks-per-request-meta-opt-in",
        NO_TASKS,
    ),
    bound(
        "tasks-dispatch-and-envelope:sep-2663-durable-create-strong-consistency",
        NO_TASKS,
    ),
    bound(
        "tasks-dispatch-and-envelope:tasks-server-directed-creation-no-hint",
        NO_TASKS,
    ),
    bound("tasks-lifecycle:sep-2663-cancel-ack-empty-result", NO_TASKS),
    bound(
        "tasks-lifecycle:sep-2663-result-type-task-on-create",
        NO_TASKS,
    ),
    bound(
        "tasks-lifecycle:sep-2663-tasks-get-status-completed",
        NO_TASKS,
    ),
    bound("tasks-lifecycle:sep-2663-tasks-get-status-failed", NO_TASKS),
    bound(
        "tasks-lifecycle:sep-2663-tasks-get-status-working",
        NO_TASKS,
    ),
    bound(
        "tasks-lifecycle:sep-2663-tool-error-uses-completed-status",
        NO_TASKS,
    ),
    bound(
        "tasks-lifecycle:tasks-cancel-terminal-idempotent-ack",
        NO_TASKS,
    ),
    bound(
        "tasks-mrtr-composition:sep-2663-mrtr-synchronous-before-task-creation",
        NO_TASKS,
    ),
    bound(
        "tasks-mrtr-input:sep-2663-tasks-get-status-input-required",
        NO_TASKS,
    ),
    bound("tasks-mrtr-input:tasks-mrtr-partial-fulfillment", NO_TASKS),
    bound("tasks-mrtr-input:tasks-mrtr-tasks-update-resumes", NO_TASKS),
    bound(
        "tasks-request-headers:sep-2663-routing-headers-accepted-on-tasks-get",
        NO_TASKS,
    ),
    bound(
        "tasks-request-headers:sep-2663-server-rejects-mismatched-mcp-name-on-tasks-get",
        NO_TASKS,
    ),
    bound(
        "tasks-request-state-removal:tasks-request-state-removal-setup",
        NO_TASKS,
    ),
    bound(
        "tasks-required-task-error:sep-2663-server-returns-missing-capability-when-required",
        NO_TASKS,
    ),
    bound("tasks-wire-fields:tasks-no-early-ttl-expiry", NO_TASKS),
    bound(
        "tasks-wire-fields:tasks-no-related-task-meta-on-inlined-result",
        NO_TASKS,
    ),
    bound("tasks-wire-fields:tasks-wire-field-renames", NO_TASKS),
];
