//! The routes of the REST interface.

use schemars::JsonSchema;

use super::{Object, SchemaOf, schema_of};
use crate::{
    activity::{Activity, ActivityQuery, Audit, AuditQuery},
    approvals::{Approval, Approvals, ApprovalsQuery, Approve, Reject, Respond},
    console::{Challenge, Link, Proof, Sessions, SignIn, SignOut, SignedIn, SignedOut},
    events::EventsQuery,
    logins::{Login, LoginCallback, LoginPage, LoginProgress, Logins},
    profiles::{ProfileView, Profiles},
    rules::{Rules, TestRule, TestedRule},
    servers::{Logs, LogsQuery, NewServer, RestartQuery, Server, ServerDetail, Servers},
    status::{Clients, Config, Readiness, RepairMemory, RepairedMemory, Shutdown, Status},
    tokens::{IssuedToken, NewToken, Tokens},
    tools::{CallTool, Search, SearchQuery, Tools, ToolsQuery},
    trust::{ServerTrust, ToolQuery, ToolTrust, Trust, TrustDecision, TrustQuery},
};

/// Errors that several routes share. A route refers to one as `#NAME`.
pub(super) const SHARED: &[(&str, &str)] = &[
    ("BadBody", "The body is invalid; the problem says where."),
    ("BadName", "The name or the ID in the URL is not UTF-8."),
    ("BadQuery", "The query is invalid."),
    ("Crowded", "Too many connections are open."),
    (
        "Decided",
        "The request is already decided or has expired. `was` is its status, and `decision` names the approver.",
    ),
    (
        "Forbidden",
        "The token lacks a right that this needs, the Host or Origin header does not name this machine, or the gateway refuses the connecting process: it belongs to a server of the gateway or to another user, runs on another machine, or cannot be identified.",
    ),
    (
        "NoRoom",
        "Too many connections are open, or the audit log is full: nothing was done.",
    ),
    (
        "LoginFailed",
        "The sign-in has failed; the problem says why.",
    ),
    (
        "NoLogin",
        "Users cannot sign in to this server, or its entry cannot be used.",
    ),
    ("NotJson", "The body is not JSON."),
    (
        "Stopping",
        "The gateway is stopping, too many connections are open, or the audit log is full: nothing was done.",
    ),
    (
        "StoreBusy",
        "The store is not ready, or too many connections are open.",
    ),
    ("TooLong", "The body is longer than 4 MiB."),
    (
        "Unauthorized",
        "The token is missing, wrong, revoked or expired.",
    ),
    ("UnknownToken", "There is no such token."),
    (
        "TokensFile",
        "The file of tokens cannot be read or written, so nothing has changed.",
    ),
    (
        "Undecided",
        "The store is not ready, so nothing was decided; or too many connections are open.",
    ),
    (
        "UnfitDecision",
        "The decision is not valid for the request.",
    ),
    ("UnknownRequest", "There is no such request."),
    (
        "UnknownServer",
        "There is no such server; `hint` suggests the closest name.",
    ),
    (
        "WrongConfig",
        "The configuration file has errors that must be fixed first; `problems` lists them.",
    ),
];

/// The credentials that a route needs over TCP.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Token,
    Open,
    /// Open, with more details for requests that have the token.
    Either,
}

pub(super) enum Content {
    Json(SchemaOf),
    Events,
    /// Text, with its schema.
    Text(&'static str),
}

pub(super) struct Route {
    pub(super) verb: &'static str,
    pub(super) path: &'static str,
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) description: Option<&'static str>,
    pub(super) access: Access,
    pub(super) query: Option<SchemaOf>,
    /// The body, and `true` if it is required.
    pub(super) body: Option<(SchemaOf, bool)>,
    pub(super) answers: Vec<(u16, &'static str, Vec<Content>)>,
    /// Errors of this route only.
    own_errors: Vec<(u16, &'static str)>,
    /// Some errors have a `Retry-After` header.
    pub(super) retries: bool,
}

fn route(verb: &'static str, path: &'static str, id: &'static str, summary: &'static str) -> Route {
    Route {
        verb,
        path,
        id,
        summary,
        description: None,
        access: Access::Token,
        query: None,
        body: None,
        answers: Vec::new(),
        own_errors: Vec::new(),
        retries: false,
    }
}

fn get(path: &'static str, id: &'static str, summary: &'static str) -> Route {
    route("get", path, id, summary)
}

fn post(path: &'static str, id: &'static str, summary: &'static str) -> Route {
    route("post", path, id, summary)
}

fn delete(path: &'static str, id: &'static str, summary: &'static str) -> Route {
    route("delete", path, id, summary)
}

impl Route {
    fn description(mut self, description: &'static str) -> Self {
        self.description = Some(description);
        self
    }

    fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    fn query<T: JsonSchema>(mut self) -> Self {
        self.query = Some(schema_of::<T>);
        self
    }

    fn body<T: JsonSchema>(mut self) -> Self {
        self.body = Some((schema_of::<T>, true));
        self
    }

    fn optional_body<T: JsonSchema>(mut self) -> Self {
        self.body = Some((schema_of::<T>, false));
        self
    }

    fn answer<T: JsonSchema>(self, status: u16, description: &'static str) -> Self {
        self.contents(status, description, vec![Content::Json(schema_of::<T>)])
    }

    fn contents(mut self, status: u16, description: &'static str, all: Vec<Content>) -> Self {
        self.answers.push((status, description, all));
        self
    }

    fn error(mut self, status: u16, description: &'static str) -> Self {
        self.own_errors.push((status, description));
        self
    }

    fn unknown_server(self) -> Self {
        self.error(404, "#UnknownServer")
    }

    fn retries(mut self) -> Self {
        self.retries = true;
        self
    }

    /// All errors: its own, followed by the common ones of similar routes.
    pub(super) fn errors(&self) -> Vec<(u16, &'static str)> {
        let mut errors = self.own_errors.clone();
        if self.query.is_some() {
            errors.push((400, "#BadQuery"));
        }
        if self.body.is_some() {
            errors.extend([(400, "#BadBody"), (413, "#TooLong"), (415, "#NotJson")]);
        }
        if self.path.contains('{') {
            errors.push((400, "#BadName"));
        }
        errors.push((403, "#Forbidden"));
        if self.access == Access::Token {
            errors.extend([(401, "#Unauthorized"), (503, "#Crowded")]);
        }
        errors
    }
}

pub(super) fn all() -> Vec<Route> {
    [
        gateway(),
        servers(),
        tools(),
        trust(),
        approvals(),
        records(),
        console(),
        tokens(),
        logins(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn gateway() -> Vec<Route> {
    vec![
        get("/healthz", "alive", "Check that the process is alive")
            .access(Access::Open)
            .contents(200, "The process is alive.", vec![Content::Text(r#"{"const": "ok"}"#)]),
        get("/readyz", "ready", "Check that the gateway is ready")
            .description("Servers that are idle, starting or parked do not count. Parts are listed only with the token.")
            .access(Access::Either)
            .answer::<Readiness>(200, "The gateway is ready.")
            .answer::<Readiness>(503, "The store is not ready, or the gateway is stopping."),
        get("/metrics", "metrics", "Get metrics for Prometheus")
            .contents(200, "Text format 0.0.4.", vec![Content::Text(r#"{"type": "string"}"#)]),
        get("/api/v1/status", "status", "Get the status of the gateway, its parts and its servers")
            .answer::<Status>(200, "The status."),
        get("/api/v1/clients", "listClients", "List the clients that are connected")
            .answer::<Clients>(200, "The clients."),
        get("/api/v1/profiles", "listProfiles", "List the profiles")
            .answer::<Profiles>(200, "The profiles."),
        get("/api/v1/profiles/{name}", "showProfile", "Get everything that the clients of a profile may see and call")
            .answer::<ProfileView>(200, "The profile, as its clients see it.")
            .error(404, "There is no such profile."),
        post("/api/v1/shutdown", "shutdown", "Stop the gateway").answer::<Shutdown>(
            202,
            "The gateway is stopping: calls in flight fail, then it stops its servers and closes the store.",
        ),
        get("/api/v1/config", "showConfig", "Get the applied configuration without its secrets")
            .answer::<Config>(200, "The configuration with all defaults."),
        post("/api/v1/config/reload", "reloadConfig", "Read the configuration file and apply it")
            .answer::<Config>(200, "The configuration is applied.")
            .error(422, "The configuration has errors and is not applied; `problems` lists them.")
            .error(503, "The gateway is stopping, or too many connections are open."),
        get("/api/v1/events", "followEvents", "Stream the events of the gateway")
            .query::<EventsQuery>()
            .contents(
                200,
                "A stream of events. The name of each is its kind, its ID is that of the `Event` in its data. IDs increase, even across restarts of the gateway. The last 1,024 events, up to 4 MiB, can be replayed. A client that has missed more, or names an unknown event, receives a `lagged` event with a `LaggedEvent`: it should read everything again. `: ping` is sent every 15 s if nothing else is. A client that does not read is disconnected after 30 s. A `calls` event is sent at most once a second while calls are made. The stream ends when the gateway stops.",
                vec![Content::Events],
            ),
        get("/api/v1/openapi.json", "describe", "Get this description")
            .answer::<Object>(200, "OpenAPI 3.1."),
    ]
}

fn servers() -> Vec<Route> {
    vec![
        get("/api/v1/servers", "listServers", "List all servers")
            .answer::<Servers>(200, "The servers."),
        post("/api/v1/servers", "addServer", "Add a server to the configuration")
            .body::<NewServer>()
            .answer::<Server>(201, "The server was added.")
            .error(409, "A server with this name already exists, or the configuration file has errors that must be fixed first.")
            .error(422, "The name or the entry is invalid.")
            .error(503, "#Stopping"),
        get("/api/v1/servers/{name}", "showServer", "Get one server")
            .answer::<ServerDetail>(200, "The server.")
            .unknown_server(),
        delete("/api/v1/servers/{name}", "removeServer", "Remove a server from the configuration")
            .contents(204, "The server was removed and is stopping.", Vec::new())
            .unknown_server()
            .error(409, "#WrongConfig")
            .error(503, "#Stopping"),
        post("/api/v1/servers/{name}/restart", "restartServer", "Restart a server and clear its failure count")
            .query::<RestartQuery>()
            .answer::<Server>(200, "The server is starting. Instances of single callers are stopped, and start again when they are used.")
            .error(404, "There is no such server or instance.")
            .error(409, "The server is disabled.")
            .error(503, "#Stopping"),
        post("/api/v1/servers/{name}/enable", "enableServer", "Enable a server in the configuration")
            .answer::<Server>(200, "The server is enabled.")
            .unknown_server()
            .error(409, "#WrongConfig")
            .error(503, "#Stopping"),
        post("/api/v1/servers/{name}/disable", "disableServer", "Disable a server in the configuration")
            .answer::<Server>(200, "The server is disabled.")
            .unknown_server()
            .error(409, "#WrongConfig")
            .error(503, "#Stopping"),
        get("/api/v1/servers/{name}/logs", "serverLogs", "Get the standard error of a server")
            .query::<LogsQuery>()
            .contents(
                200,
                "The last lines. With `follow=true`, a stream: one `line` event for each of them, then one for each new line.",
                vec![Content::Json(schema_of::<Logs>), Content::Events],
            )
            .unknown_server()
            .error(500, "The log cannot be read."),
    ]
}

fn tools() -> Vec<Route> {
    vec![
        get("/api/v1/tools", "listTools", "List the tools of all servers")
            .query::<ToolsQuery>()
            .answer::<Tools>(200, "The tools.")
            .error(404, "There is no such server or tool; `hint` suggests the closest name.")
            .error(409, "The server of the tool is disabled or needs a project directory, or the tool is held.")
            .error(422, "The project cannot be one.")
            .error(503, "The server of the tool is not ready or cannot be started."),
        post("/api/v1/tools/call", "callTool", "Call a tool")
            .body::<CallTool>()
            .contents(
                200,
                "The result, verbatim as the server sent it. It may have `isError`. With `progress`, a stream.",
                vec![Content::Json(schema_of::<Object>), Content::Events],
            )
            .error(404, "There is no such tool; `hint` suggests the closest name.")
            .error(409, "The server is disabled or needs a project directory, or the tool is held.")
            .error(429, "The queue of the server is full.")
            .error(
                502,
                "The connection to the server was lost during the call, or its response is invalid; or, with `code`, `message` and `data`, it responded with a JSON-RPC error.",
            )
            .error(503, "The server is not ready or cannot be started, or too many connections are open.")
            .error(504, "The server did not respond in time.")
            .retries(),
        get("/api/v1/search", "searchTools", "Search for tools by task")
            .query::<SearchQuery>()
            .answer::<Search>(200, "The tools.")
            .unknown_server()
            .error(503, "The search index is not ready or closed, or too many connections are open."),
        delete("/api/v1/search/learnt", "forgetSearches", "Clear the feedback from earlier searches")
            .contents(204, "The feedback is cleared.", Vec::new())
            .error(500, "The feedback is cleared until the next start, but its file cannot be removed."),
    ]
}

fn trust() -> Vec<Route> {
    vec![
        get(
            "/api/v1/trust",
            "listTrust",
            "List the definitions that are approved, held or suspicious",
        )
        .query::<TrustQuery>()
        .answer::<Trust>(200, "The servers.")
        .unknown_server(),
        get(
            "/api/v1/trust/{name}",
            "showTrust",
            "Get the approved and the held version of one definition",
        )
        .query::<ToolQuery>()
        .answer::<ToolTrust>(200, "The definition.")
        .error(
            404,
            "There is no such server, or it never had such a definition.",
        ),
        post(
            "/api/v1/trust/{name}/approve",
            "approveTools",
            "Approve definitions of a server, or its start",
        )
        .body::<TrustDecision>()
        .answer::<ServerTrust>(200, "The updated trust state of the server.")
        .error(
            404,
            "There is no such server, or the definition is not held.",
        )
        .error(
            409,
            "The definition or the start has changed since the user reviewed it.",
        )
        .error(503, "#NoRoom"),
        post(
            "/api/v1/trust/{name}/reject",
            "rejectTool",
            "Reject a definition of a server",
        )
        .body::<TrustDecision>()
        .answer::<ServerTrust>(200, "The updated trust state of the server.")
        .error(
            404,
            "There is no such server, or the definition is not held.",
        )
        .error(
            409,
            "The definition has changed since the user reviewed it.",
        )
        .error(503, "#NoRoom"),
    ]
}

fn approvals() -> Vec<Route> {
    let decision = |route: Route| {
        route
            .answer::<Approval>(200, "The updated request.")
            .error(404, "#UnknownRequest")
            .error(409, "#Decided")
            .error(
                429,
                "Too many decisions about this request are in progress.",
            )
            .error(503, "#Undecided")
    };
    vec![
        get("/api/v1/approvals", "listApprovals", "List requests for approval")
            .query::<ApprovalsQuery>()
            .answer::<Approvals>(200, "The requests.")
            .error(503, "#StoreBusy"),
        get("/api/v1/approvals/{id}", "showApproval", "Get one request in full")
            .answer::<Approval>(200, "The request.")
            .error(404, "#UnknownRequest")
            .error(503, "#StoreBusy"),
        decision(
            post("/api/v1/approvals/{id}/approve", "approveRequest", "Approve a request, optionally with changes")
                .optional_body::<Approve>()
                .error(422, "#UnfitDecision"),
        ),
        decision(
            post("/api/v1/approvals/{id}/reject", "rejectRequest", "Reject a request")
                .optional_body::<Reject>()
                .error(422, "#UnfitDecision"),
        ),
        decision(
            post("/api/v1/approvals/{id}/respond", "respondToRequest", "Answer a question, or answer in place of a model")
                .optional_body::<Respond>()
                .error(422, "The content does not match the form (`problems` says where), or the decision is not valid for the request."),
        ),
        get("/api/v1/approvals/rules", "listRules", "List the rules")
            .answer::<Rules>(200, "The rules."),
        post("/api/v1/approvals/rules/test", "testRule", "Show the effect of a rule on tools and on past calls")
            .body::<TestRule>()
            .answer::<TestedRule>(200, "The effect.")
            .error(422, "The rule is invalid.")
            .error(503, "#StoreBusy"),
        delete("/api/v1/approvals/rules/{id}", "forgetRule", "Forget a remembered decision")
            .contents(204, "The decision is forgotten.", Vec::new())
            .error(404, "There is no such remembered decision.")
            .error(503, "#StoreBusy"),
    ]
}

fn records() -> Vec<Route> {
    vec![
        get(
            "/api/v1/activity",
            "listActivity",
            "List the calls that went through the gateway",
        )
        .query::<ActivityQuery>()
        .answer::<Activity>(200, "The calls.")
        .error(503, "#StoreBusy"),
        get(
            "/api/v1/audit",
            "listAudit",
            "List the entries of the audit log",
        )
        .query::<AuditQuery>()
        .answer::<Audit>(200, "The entries.")
        .error(503, "#StoreBusy"),
        post(
            "/api/v1/memory/repair",
            "repairMemory",
            "Recover memories from a damaged file, or start without them",
        )
        .optional_body::<RepairMemory>()
        .answer::<RepairedMemory>(
            200,
            "The numbers of recovered items; all are 0 if the memory is not damaged.",
        )
        .error(404, "This build of the gateway has no memory.")
        .error(503, "#StoreBusy"),
    ]
}

fn console() -> Vec<Route> {
    const TOO_LONG: &str = "The body is longer than 4 KiB.";
    const NOT_JSON: &str = "The Content-Type header is missing or is not application/json.";
    vec![
        post("/api/v1/console/sign-in", "signIn", "Exchange the key of a link for a console session")
            .description("Send the session in place of the token; it is valid for one day, but not for MCP. This request, and every request with the session, must use the host name of the link, and a page that sends it must have that origin.")
            .access(Access::Open)
            .body::<SignIn>()
            .answer::<SignedIn>(200, "The session. The key cannot be used again.")
            .error(401, "The key is unknown, used or expired.")
            .error(413, TOO_LONG)
            .error(415, NOT_JSON)
            .error(503, "#NoRoom"),
        post("/api/v1/console/prove", "prove", "Prove to a page of the console that this gateway opened its session")
            .description("A page sends this before it sends its session, since another program may have taken the port. It needs no token.")
            .access(Access::Open)
            .body::<Challenge>()
            .answer::<Proof>(200, "The proof.")
            .error(404, "There is no such session.")
            .error(413, TOO_LONG)
            .error(415, NOT_JSON)
            .error(422, "The nonce is too short or too long."),
        post("/api/v1/console/link", "makeLink", "Create a link that opens the console once, within one day")
            .answer::<Link>(200, "The link.")
            .error(
                409,
                "The gateway listens on its socket only, or another program listens where a browser may look for the console.",
            )
            .error(503, "#NoRoom"),
        get("/api/v1/console/sessions", "listSessions", "List the browsers that are signed in to the console")
            .answer::<Sessions>(200, "The sessions."),
        post("/api/v1/console/sign-out", "signOut", "End one console session, or all")
            .optional_body::<SignOut>()
            .answer::<SignedOut>(200, "The number of sessions that ended.")
            .error(422, "The body names no session, and the request has none.")
            .error(503, "#NoRoom"),
    ]
}

fn logins() -> Vec<Route> {
    vec![
        get(
            "/api/v1/logins",
            "listLogins",
            "List the sign-ins to servers, without their tokens",
        )
        .answer::<Logins>(200, "The sign-ins."),
        post(
            "/api/v1/servers/{name}/login",
            "startLogin",
            "Start a sign-in to a server with OAuth",
        )
        .description("A sign-in that is in progress is cancelled.")
        .answer::<LoginPage>(200, "The page that the user has to open.")
        .unknown_server()
        .error(409, "#NoLogin")
        .error(502, "#LoginFailed")
        .error(503, "#Stopping"),
        get(
            "/api/v1/servers/{name}/login",
            "waitForLogin",
            "Wait up to 2 s for the user to finish the sign-in",
        )
        .answer::<LoginProgress>(200, "The progress of the sign-in.")
        .unknown_server()
        .error(502, "#LoginFailed"),
        post(
            "/api/v1/servers/{name}/login/callback",
            "finishLogin",
            "Report the address that the browser of the user was redirected to",
        )
        .description("Only needed if the browser runs on another machine than the gateway.")
        .body::<LoginCallback>()
        .contents(204, "The address belongs to the sign-in.", Vec::new())
        .error(
            404,
            "There is no such server, or no sign-in is in progress.",
        )
        .error(
            502,
            "The address does not belong to the sign-in, or the sign-in has failed.",
        ),
        post(
            "/api/v1/servers/{name}/logout",
            "logout",
            "Revoke and forget the tokens for a server",
        )
        .answer::<Login>(200, "The sign-in.")
        .unknown_server()
        .error(409, "#NoLogin")
        .error(502, "The tokens cannot be revoked or forgotten.")
        .error(503, "#Stopping"),
    ]
}

fn tokens() -> Vec<Route> {
    vec![
        get(
            "/api/v1/tokens",
            "listTokens",
            "List the tokens, without their secrets",
        )
        .answer::<Tokens>(200, "The tokens."),
        post("/api/v1/tokens", "createToken", "Create a token")
            .body::<NewToken>()
            .answer::<IssuedToken>(201, "The token. It is shown only in this response.")
            .error(
                409,
                "A token with this name already exists, or there are too many tokens.",
            )
            .error(
                422,
                "The name, a right, the profile, a server or the lifetime is invalid.",
            )
            .error(500, "#TokensFile")
            .error(503, "#NoRoom"),
        delete("/api/v1/tokens/{name}", "revokeToken", "Revoke a token")
            .contents(
                204,
                "The token is rejected from now on, and its sessions have ended.",
                Vec::new(),
            )
            .error(404, "#UnknownToken")
            .error(500, "#TokensFile")
            .error(503, "#NoRoom"),
        post(
            "/api/v1/tokens/{name}/rotate",
            "rotateToken",
            "Replace the secret of a token",
        )
        .answer::<IssuedToken>(
            200,
            "The new token. The old one is rejected from now on, and its sessions have ended.",
        )
        .error(404, "#UnknownToken")
        .error(500, "#TokensFile")
        .error(503, "#NoRoom"),
    ]
}
