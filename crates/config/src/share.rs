//! The setting `share` of a server.

/// The setting `share` of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Share {
    /// The gateway decides.
    #[default]
    Auto,
    /// All callers share one process.
    All,
    /// The callers that work in one directory share a process.
    Project,
    /// Each client has a process of its own.
    Client,
}

impl Share {
    /// The value in the configuration file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::All => "all",
            Self::Project => "project",
            Self::Client => "client",
        }
    }

    pub(crate) fn read(text: &str) -> Self {
        match text {
            "all" => Self::All,
            "project" => Self::Project,
            "client" => Self::Client,
            _ => Self::Auto,
        }
    }
}
