//! Trust: the definitions that are approved, held or suspicious.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use switchboard_wire::Raw;

use crate::words::{FindingKind, HeldReason, ItemKind, Severity, TrustPolicy};

/// Filters for the trust in servers.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TrustQuery {
    /// Only this server.
    pub server: Option<String>,
    /// Omit the contents of definitions: `omitted` is always true, and `findings` and `flagged` are empty.
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
    /// The configured policy.
    pub trust: TrustPolicy,
    /// The number of approved definitions.
    pub approved: u64,
    /// The command or the address, while its start waits for approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
    /// The definitions that are held.
    pub held: Vec<HeldTool>,
    /// The visible definitions that have a finding of severity `warn` or higher.
    pub flagged: Vec<Flagged>,
    /// A hint about the server's record as a whole.
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
    /// The command line, or the image with its arguments, quoted for a shell; or the address without its
    /// credentials.
    pub program: String,
    /// The fingerprint of every field that determines what is started or connected to, including the values
    /// of variables and headers, and of the file that the command resolves to.
    pub fingerprint: String,
    /// The other fields that determine how the server is started, with their keys in the configuration:
    /// `cwd`, `inheritEnv`, `engine`, `mounts` and so on. `env` and `headers` have their values; a variable
    /// with the name and the value of a credential is null, and secrets in headers are `[redacted]`. `file`
    /// is the file that the command or the container engine resolves to under the server's `PATH`, null if
    /// there is none. For an address that may be misread (a name before an `@`, an unusual spelling), `host`
    /// is the host and port to connect to.
    #[serde(default)]
    pub settings: Map<String, Value>,
    /// The secrets and variables of the gateway that the server receives, as `${secret:NAME}` and
    /// `${env:NAME}`.
    #[serde(default)]
    pub references: Vec<String>,
}

/// A definition that is held.
#[derive(Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct HeldTool {
    /// The name, as `SERVER:TOOL`, `SERVER:(prompt) NAME`, `SERVER:(resource) URI`, `SERVER:(template) URI`
    /// or `SERVER:(instructions)`.
    pub name: String,
    /// The kind.
    pub kind: ItemKind,
    /// The part of the name after the server. It identifies the definition in decisions.
    pub tool: String,
    /// The reason why it is held.
    pub why: HeldReason,
    /// The SHA-256 hash of the definition, as 64 hexadecimal digits.
    pub fingerprint: String,
    /// The time from which it has been held, in milliseconds since 1970.
    pub since_ms: u64,
    /// The fields that changed since the approval.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// The changes as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The suspicious parts, most severe first.
    pub findings: Vec<Finding>,
    /// The current definition, as the server sent it; null if it is too large to keep.
    #[cfg_attr(test, schemars(with = "Option<crate::openapi::Object>"))]
    pub definition: Option<Raw>,
    /// The last approved definition.
    #[cfg_attr(test, schemars(with = "Option<crate::openapi::Object>"))]
    pub approved: Option<Raw>,
    /// True if changes, diff and definitions are omitted, because `brief` was given or too many definitions
    /// of this server are held. `/api/v1/trust/{name}` returns them for one definition.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub omitted: bool,
}

impl HeldTool {
    /// Tests if the definition waits for a decision.
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
    /// The approved value; null if there was none.
    pub before: Option<String>,
    /// The current value; null if there is none.
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
    /// The surrounding text, with invisible characters as ⟨U+200B⟩.
    pub excerpt: String,
    /// An explanation; its subject is the field.
    pub says: String,
}

/// A visible definition that is suspicious.
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
    /// The suspicious parts, most severe first.
    pub findings: Vec<Finding>,
}

/// The requested definition.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ToolQuery {
    /// The part of its name after the server.
    pub tool: String,
}

/// One definition: the approved one and the one that is held.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ToolTrust {
    /// The server.
    #[serde(default)]
    pub server: String,
    /// The definition that is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldTool>,
    /// The approved definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved: Option<ApprovedTool>,
}

/// An approved definition.
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
    /// The definition; null if it is too large to keep.
    #[cfg_attr(test, schemars(with = "Option<crate::openapi::Object>"))]
    pub definition: Option<Raw>,
    /// The suspicious parts, most severe first.
    pub findings: Vec<Finding>,
}

/// A decision about definitions, or about the start of a server. Without any field, `approve` approves all
/// definitions that are held; `reject` needs `tool`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TrustDecision {
    /// The definition to decide about.
    #[serde(default, deserialize_with = "given")]
    pub tool: Option<String>,
    /// Several definitions as the user read them, for `approve` only. Definitions that have changed since
    /// remain held, as the answer shows.
    #[serde(default, deserialize_with = "given")]
    pub tools: Option<Vec<SeenTool>>,
    /// The fingerprint of the definition that the user read. If `tool` has changed since, nothing is decided.
    #[serde(default, deserialize_with = "given")]
    pub fingerprint: Option<String>,
    /// The fingerprint in `start` of a server whose start waits for approval, for `approve` only. If its
    /// entry has changed since, the server is not started.
    #[serde(default, deserialize_with = "given")]
    pub start: Option<String>,
}

/// Rejects `null`, which must not approve all definitions.
fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// A definition that the user read.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SeenTool {
    /// The part of its name after the server.
    pub tool: String,
    /// The fingerprint of the definition that the user read.
    pub fingerprint: String,
}
