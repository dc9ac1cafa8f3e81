//! Trust: the definitions that are approved, held back or suspicious.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use switchboard_wire::Raw;

use crate::words::{FindingKind, HeldReason, ItemKind, Severity, TrustPolicy};

/// The servers that are wanted.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TrustQuery {
    /// Only this server.
    pub server: Option<String>,
    /// Leave out the contents of definitions: `omitted` is true everywhere, and `findings` and `flagged` are empty.
    #[serde(default)]
    pub brief: bool,
}

/// The trust in each server.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Trust {
    /// The servers.
    pub servers: Vec<ServerTrust>,
}

/// The trust in one server.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServerTrust {
    /// The name of the server.
    pub name: String,
    /// The policy of its configuration.
    pub trust: TrustPolicy,
    /// The number of approved definitions.
    pub approved: u64,
    /// The command or the address, while its start waits for approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
    /// The definitions that are held back.
    pub held: Vec<HeldTool>,
    /// The definitions that are shown and have a finding of severity `warn` or worse.
    pub flagged: Vec<Flagged>,
    /// Advice about the record of the server as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl ServerTrust {
    /// The definitions that wait for a decision.
    pub fn pending(&self) -> impl Iterator<Item = &HeldTool> {
        self.held.iter().filter(|held| held.is_pending())
    }
}

/// A start that waits for approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Start {
    /// The command line, or the image with its arguments, quoted for a shell; or the address without its credentials.
    pub program: String,
    /// The fingerprint of every field that decides what is started or reached, with the values of variables and headers,
    /// and of the file that the command resolves to.
    pub fingerprint: String,
    /// The other fields that decide how the server is started, under their keys in the configuration: `cwd`, `inheritEnv`,
    /// `engine`, `mounts` and so on. `env` and `headers` have their values; a variable with the name and the value of a
    /// credential is null, and secrets in headers are `[redacted]`. `file` is the file that the command or the container
    /// engine resolves to under the server's `PATH`, null if there is none. For an address that may be misread (a name
    /// before an `@`, another spelling), `host` is the host and port that are connected to.
    #[serde(default)]
    pub settings: Map<String, Value>,
    /// The secrets and variables of the gateway that the server receives, as `${secret:NAME}` and `${env:NAME}`.
    #[serde(default)]
    pub references: Vec<String>,
}

/// A definition that is held back.
#[derive(Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct HeldTool {
    /// The name, as `SERVER:TOOL`, `SERVER:(prompt) NAME`, `SERVER:(resource) URI`, `SERVER:(template) URI` or
    /// `SERVER:(instructions)`.
    pub name: String,
    /// The kind.
    pub kind: ItemKind,
    /// The part of the name after the server, which names the definition in decisions.
    pub tool: String,
    /// The reason why it is held back.
    pub why: HeldReason,
    /// The SHA-256 hash of the definition, as 64 hexadecimal digits.
    pub fingerprint: String,
    /// The time since when it is held back, in milliseconds since 1970.
    pub since_ms: u64,
    /// The fields that changed since the approval.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// The changes as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The suspicious parts, the most severe first.
    pub findings: Vec<Finding>,
    /// The definition as the server sends it now; null if it is too large to be kept.
    #[cfg_attr(test, schemars(with = "Option<crate::openapi::Object>"))]
    pub definition: Option<Raw>,
    /// The definition that was approved last.
    #[cfg_attr(test, schemars(with = "Option<crate::openapi::Object>"))]
    pub approved: Option<Raw>,
    /// True if changes, diff and definitions are left out, because `brief` was given or too many definitions of this
    /// server are held back. `/api/v1/trust/{name}` returns them for one definition.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub omitted: bool,
}

impl HeldTool {
    /// Tests if it waits for a decision.
    pub fn is_pending(&self) -> bool {
        self.why != "rejected"
    }
}

/// A field that changed.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Change {
    /// The path of the field, such as `parameters.path.type`.
    pub field: String,
    /// The value that was approved; null if there was none.
    pub before: Option<String>,
    /// The value now; null if there is none.
    pub after: Option<String>,
}

/// A suspicious part of a definition.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Finding {
    /// The kind.
    #[serde(default)]
    pub kind: FindingKind,
    /// The severity.
    pub severity: Severity,
    /// The path of the field, such as `parameters.path.description`.
    pub field: String,
    /// The text around it, with invisible characters written as ⟨U+200B⟩.
    pub excerpt: String,
    /// An explanation, whose subject is the field.
    pub says: String,
}

/// A definition that is shown and suspicious.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Flagged {
    /// The name, as in `held`.
    pub name: String,
    /// The kind.
    #[serde(default)]
    pub kind: ItemKind,
    /// The part of the name after the server.
    #[serde(default)]
    pub tool: String,
    /// The suspicious parts, the most severe first.
    pub findings: Vec<Finding>,
}

/// The definition that is wanted.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ToolQuery {
    /// The part of its name after the server.
    pub tool: String,
}

/// One definition, as it is approved and as it is held back.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ToolTrust {
    /// The server.
    #[serde(default)]
    pub server: String,
    /// The definition that is held back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldTool>,
    /// The definition that is approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved: Option<ApprovedTool>,
}

/// A definition that is approved.
#[derive(Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct ApprovedTool {
    /// The name, as in `held`.
    pub name: String,
    /// The kind.
    pub kind: ItemKind,
    /// The part of the name after the server.
    pub tool: String,
    /// The SHA-256 hash of the definition, as 64 hexadecimal digits.
    pub fingerprint: String,
    /// The time of the approval, in milliseconds since 1970.
    pub at_ms: u64,
    /// The definition; null if it is too large to be kept.
    #[cfg_attr(test, schemars(with = "Option<crate::openapi::Object>"))]
    pub definition: Option<Raw>,
    /// The suspicious parts, the most severe first.
    pub findings: Vec<Finding>,
}

/// A decision about definitions, or about the start of a server. Without any field, `approve` approves all definitions
/// that are held back; `reject` needs `tool`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TrustDecision {
    /// The definition that the decision is about.
    #[serde(default, deserialize_with = "given")]
    pub tool: Option<String>,
    /// Several definitions as the user has read them, for `approve` only. Those that have changed since stay held back, as
    /// the answer shows.
    #[serde(default, deserialize_with = "given")]
    pub tools: Option<Vec<SeenTool>>,
    /// The fingerprint of the definition that the user has read. If `tool` has changed since, nothing is decided.
    #[serde(default, deserialize_with = "given")]
    pub fingerprint: Option<String>,
    /// The fingerprint in `start` of a server whose start waits for approval, for `approve` only. If its entry has changed
    /// since, it is not started.
    #[serde(default, deserialize_with = "given")]
    pub start: Option<String>,
}

/// Refuses `null`, which must not approve all definitions.
fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// A definition that the user has read.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SeenTool {
    /// The part of its name after the server.
    pub tool: String,
    /// The fingerprint of the definition that the user has read.
    pub fingerprint: String,
}
