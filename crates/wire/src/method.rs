//! The names of the methods, in one place, so that each is spelled only once.

/// Opens a session with a server of one of the four older revisions.
pub const INITIALIZE: &str = "initialize";
/// Notifies such a server that the session is open.
pub const INITIALIZED: &str = "notifications/initialized";
/// Asks a server of 2026-07-28 for its revisions and capabilities.
pub const DISCOVER: &str = "server/discover";
/// Checks that the peer is alive, in either direction (older revisions).
pub const PING: &str = "ping";
/// Cancels a request.
pub const CANCELLED: &str = "notifications/cancelled";
/// Reports the progress of a request.
pub const PROGRESS: &str = "notifications/progress";
/// Carries a log message of the server.
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
/// Subscribes to a resource (older revisions).
pub const RESOURCES_SUBSCRIBE: &str = "resources/subscribe";
/// Unsubscribes from a resource (older revisions).
pub const RESOURCES_UNSUBSCRIBE: &str = "resources/unsubscribe";
/// Completes an argument.
pub const COMPLETE: &str = "completion/complete";
/// Sets the log level of a session (older revisions).
pub const SET_LEVEL: &str = "logging/setLevel";
/// Opens a stream of notifications (2026-07-28).
pub const LISTEN: &str = "subscriptions/listen";
/// The first message on such a stream: the subscriptions that the server accepted.
pub const LISTEN_ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
/// Asks the client for a completion by its model.
pub const SAMPLING: &str = "sampling/createMessage";
/// Asks the client for input by its user.
pub const ELICITATION: &str = "elicitation/create";
/// Asks the client for its roots.
pub const ROOTS_LIST: &str = "roots/list";
/// The client's roots have changed (older revisions).
pub const ROOTS_CHANGED: &str = "notifications/roots/list_changed";
/// The interaction at a URL that the user was asked to open is complete (2025-11-25).
pub const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";
/// Returns the state of a task.
pub const TASKS_GET: &str = "tasks/get";
/// Returns the result of a task, once there is one (2025-11-25).
pub const TASKS_RESULT: &str = "tasks/result";
/// Lists tasks (2025-11-25).
pub const TASKS_LIST: &str = "tasks/list";
/// Cancels a task.
pub const TASKS_CANCEL: &str = "tasks/cancel";
/// Provides the input that a task asks for (the tasks extension of 2026-07-28).
pub const TASKS_UPDATE: &str = "tasks/update";
/// A resource has changed.
pub const RESOURCE_UPDATED: &str = "notifications/resources/updated";
/// The tools have changed.
pub const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
/// The prompts have changed.
pub const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
/// The resources, or their templates, have changed.
pub const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";
/// The state of a task has changed (2025-11-25).
pub const TASK_STATUS: &str = "notifications/tasks/status";
/// The state of a task has changed (the tasks extension of 2026-07-28).
pub const TASKS_CHANGED: &str = "notifications/tasks";

/// The names of all methods above.
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

/// Tests if a reader that ignores letter case and separators may take this name for one of the names above.
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

/// Returns the letters and digits of a name, in lower case.
fn letters(name: &str) -> impl Iterator<Item = u8> {
    let letters = name.bytes().filter(u8::is_ascii_alphanumeric);
    letters.map(|letter| letter.to_ascii_lowercase())
}
