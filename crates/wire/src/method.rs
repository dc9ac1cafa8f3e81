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
