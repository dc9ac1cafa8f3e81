//! Enumerations as words. A word of another version is kept.

use std::{borrow::Cow, fmt, ops::Deref};

use serde::{Deserialize, Serialize};
use serde_json::Value;

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident: $($word:literal),+;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema), schemars(extend("enum" = [$($word),+])))]
        #[serde(transparent)]
        pub struct $name(Cow<'static, str>);

        impl $name {
            /// The words of this version.
            pub const ALL: &[&str] = &[$($word),+];

            /// The word that a fieldless variant serializes to.
            pub fn of(variant: &impl Serialize) -> Self {
                match serde_json::to_value(variant) {
                    Ok(Value::String(word)) => Self(word.into()),
                    _ => Self::default(),
                }
            }
        }

        impl From<&'static str> for $name {
            fn from(word: &'static str) -> Self {
                Self(word.into())
            }
        }

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, word: &&str) -> bool {
                self.0 == *word
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    )+};
}

words! {
    /// The tools that a client is shown.
    ToolView: "direct", "search", "nothing";
    /// A thing that a token permits.
    Right: "call", "approve", "admin";
    /// The state of the gateway.
    GatewayState: "running", "stopping";
    /// The state of a part of the gateway.
    PartState: "initializing", "ready", "error";
    /// The state of a server. A `retrying` server has failed and will be restarted; a `parked` one has failed
    /// too often, or needs the user; one that `needs sign-in` is started once the user has signed in to it.
    ServerState: "disabled", "idle", "starting", "ready", "retrying", "parked", "needs sign-in", "stopping";
    /// The state of the sign-in to a server. `none`: it has not asked for one so far; `unreadable`: the stored
    /// one cannot be read.
    LoginState: "none", "needs sign-in", "signing in", "signed in", "signed out", "unreadable";
    /// The kind of a server.
    ServerKind: "command", "remote", "container", "built-in";
    /// The time at which a server is started: on first use, with the gateway, or as the gateway decides.
    StartTime: "lazy", "eager", "auto";
    /// The callers that share a process or connection of a server: all, the clients in one directory, or none.
    Sharing: "all", "project", "client";
    /// A request for a list.
    ListRequest: "tools/list", "prompts/list", "resources/list", "resources/templates/list";
    /// The transport of a client.
    Transport: "stdio", "http";
    /// The outcome of a call. `tool_error` is a result in which the tool reports a failure.
    Outcome: "ok", "tool_error", "error", "cancelled", "timeout";
    /// The time at which definitions of a server become visible: when first seen, after approval, or always.
    TrustPolicy: "first", "ask", "always";
    /// The kind of a definition.
    ItemKind: "tool", "prompt", "resource", "template", "instructions", "server";
    /// The reason why a definition is held.
    HeldReason: "changed", "new", "hidden", "dangerous", "rejected";
    /// The kind of a finding.
    FindingKind: "invisible", "direction", "control", "private-use", "look-alike", "out-of-sight", "markup", "encoded",
        "override", "secrecy", "exfiltration", "steering", "other-tools", "cut";
    /// The severity of a finding. Definitions with a `danger` or `hidden` finding are held when first
    /// seen.
    Severity: "note", "warn", "danger", "hidden";
    /// The kind of a request for approval.
    ApprovalKind: "sampling", "elicitation", "tool_call", "resource", "prompt", "trust";
    /// The status of a request for approval. The first four are open.
    ApprovalStatus: "pending", "orphaned", "generating", "reviewing", "approved", "rejected", "accepted", "declined",
        "cancelled", "timed_out", "withdrawn", "failed";
    /// The action of a decision.
    DecisionAction: "approve", "reject", "accept", "decline", "cancel", "respond";
    /// The interface through which a request arrived.
    Door: "socket", "tcp", "console";
    /// The clients that a remembered decision applies to: this client until it disconnects, clients with the
    /// same working directory, or all clients.
    Scope: "session", "project", "always";
    /// The arguments that a remembered decision applies to: any, or exactly those of the call.
    Arguments: "any", "exact";
    /// The origin of a rule.
    RuleSource: "config", "server", "remembered";
    /// The action of a rule.
    RuleAction: "allow", "ask", "deny";
    /// The kind of calls that a rule applies to.
    RuleKind: "tool_call", "resources", "prompts";
}
