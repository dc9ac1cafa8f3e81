//! The names of the methods, in one place, so that no two files spell them differently.

/// Opens a session with a server of the four older revisions.
pub const INITIALIZE: &str = "initialize";
/// Tells such a server that the session is open.
pub const INITIALIZED: &str = "notifications/initialized";
/// Asks a server of 2026-07-28 what it speaks and offers.
pub const DISCOVER: &str = "server/discover";
/// Liveness, either way, in the older revisions.
pub const PING: &str = "ping";
/// Withdraws a request that its sender no longer wants answered.
pub const CANCELLED: &str = "notifications/cancelled";
/// How far a request has come.
pub const PROGRESS: &str = "notifications/progress";
/// A log message of the server.
pub const LOG_MESSAGE: &str = "notifications/message";
/// Lists tools.
pub const TOOLS_LIST: &str = "tools/list";
/// Calls a tool.
pub const TOOLS_CALL: &str = "tools/call";
/// Lists prompts.
pub const PROMPTS_LIST: &str = "prompts/list";
/// Renders a prompt.
pub const PROMPTS_GET: &str = "prompts/get";
/// Lists resources.
pub const RESOURCES_LIST: &str = "resources/list";
/// Lists resource templates.
pub const RESOURCE_TEMPLATES_LIST: &str = "resources/templates/list";
/// Reads a resource.
pub const RESOURCES_READ: &str = "resources/read";
/// Watches a resource (older revisions).
pub const RESOURCES_SUBSCRIBE: &str = "resources/subscribe";
/// Stops watching a resource (older revisions).
pub const RESOURCES_UNSUBSCRIBE: &str = "resources/unsubscribe";
/// Completes an argument.
pub const COMPLETE: &str = "completion/complete";
/// Sets the log level of a session (older revisions).
pub const SET_LEVEL: &str = "logging/setLevel";
/// Opens a stream of notifications (2026-07-28).
pub const LISTEN: &str = "subscriptions/listen";
/// The first message on such a stream: what the server will honour.
pub const LISTEN_ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
/// The server wants a model's answer.
pub const SAMPLING: &str = "sampling/createMessage";
/// The server wants a person's answer.
pub const ELICITATION: &str = "elicitation/create";
/// The server wants to know the client's roots.
pub const ROOTS_LIST: &str = "roots/list";
/// The client's roots changed (older revisions).
pub const ROOTS_CHANGED: &str = "notifications/roots/list_changed";
/// What an address was opened for is done (2025-11-25).
pub const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";
/// Tells how a task stands.
pub const TASKS_GET: &str = "tasks/get";
/// Gives the result of a task when there is one (2025-11-25).
pub const TASKS_RESULT: &str = "tasks/result";
/// Lists tasks (2025-11-25).
pub const TASKS_LIST: &str = "tasks/list";
/// Ends a task.
pub const TASKS_CANCEL: &str = "tasks/cancel";
/// Answers what a task asks (the extension of 2026-07-28).
pub const TASKS_UPDATE: &str = "tasks/update";
/// A resource has changed.
pub const RESOURCE_UPDATED: &str = "notifications/resources/updated";
/// The tools have changed.
pub const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
/// The prompts have changed.
pub const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
/// The resources, or their templates, have changed.
pub const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";
/// A task has another state (2025-11-25).
pub const TASK_STATUS: &str = "notifications/tasks/status";
/// The same in the extension of 2026-07-28.
pub const TASKS_CHANGED: &str = "notifications/tasks";

/// All of them.
const ALL: [&str; 36] = [
    INITIALIZE,
    INITIALIZED,
    DISCOVER,
    PING,
    CANCELLED,
    PROGRESS,
    LOG_MESSAGE,
    TOOLS_LIST,
    TOOLS_CALL,
    PROMPTS_LIST,
    PROMPTS_GET,
    RESOURCES_LIST,
    RESOURCE_TEMPLATES_LIST,
    RESOURCES_READ,
    RESOURCES_SUBSCRIBE,
    RESOURCES_UNSUBSCRIBE,
    COMPLETE,
    SET_LEVEL,
    LISTEN,
    LISTEN_ACKNOWLEDGED,
    SAMPLING,
    ELICITATION,
    ROOTS_LIST,
    ROOTS_CHANGED,
    ELICITATION_COMPLETE,
    TASKS_GET,
    TASKS_RESULT,
    TASKS_LIST,
    TASKS_CANCEL,
    TASKS_UPDATE,
    RESOURCE_UPDATED,
    TOOLS_CHANGED,
    PROMPTS_CHANGED,
    RESOURCES_CHANGED,
    TASK_STATUS,
    TASKS_CHANGED,
];

/// Tests if a reader that is not strict about letter case and separators may take this for one of the names above.
///
/// ```
/// use switchboard_wire::method;
///
/// assert!(method::is_known("tools/call"));
/// assert!(method::is_known("Resources//Read"));
/// assert!(!method::is_known("resources/directory/read"));
/// ```
pub fn is_known(method: &str) -> bool {
    ALL.iter().any(|known| letters(known).eq(letters(method)))
}

/// The letters and digits of a name, in lower case.
fn letters(name: &str) -> impl Iterator<Item = u8> {
    let letters = name.bytes().filter(u8::is_ascii_alphanumeric);
    letters.map(|letter| letter.to_ascii_lowercase())
}
