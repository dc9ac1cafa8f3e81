//! The views of the gateway: every server together, or one server alone.

use std::{borrow::Cow, sync::Arc};

/// An address of the gateway for clients: a view, and the profile that it is held to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The name of the profile, if the address names one.
    pub profile: Option<Arc<str>>,
    /// The view.
    pub view: View,
}

impl Endpoint {
    /// Its path after `/mcp/`.
    pub fn place(&self) -> String {
        let view = self.view.place();
        match &self.profile {
            None => view.into_owned(),
            Some(profile) => {
                let between = if view.is_empty() { "" } else { "/" };
                format!("p/{}{between}{view}", switchboard_catalog::escape(profile))
            }
        }
    }
}

impl From<View> for Endpoint {
    fn from(view: View) -> Self {
        Self {
            profile: None,
            view,
        }
    }
}

/// The servers that a client sees, and the names under which it sees them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum View {
    /// All servers together: prompts and resources under names made by the gateway, and tools as [`Face`]
    /// says.
    All(Face),
    /// One server, with names unchanged.
    Server(Arc<str>),
}

/// The form in which the tools of all servers are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Face {
    /// As the configuration says.
    Configured,
    /// Every tool of every server as `server__tool`.
    Direct,
    /// A small menu with which clients find and call tools.
    Search,
}

impl View {
    /// The path of the view after `/mcp/`, which also identifies it.
    pub fn place(&self) -> Cow<'_, str> {
        match self {
            Self::All(Face::Configured) => "".into(),
            Self::All(Face::Direct) => "direct".into(),
            Self::All(Face::Search) => "search".into(),
            Self::Server(name) => format!("s/{}", switchboard_catalog::escape(name)).into(),
        }
    }

    /// Tests if the server is part of this view.
    pub fn sees(&self, server: &str) -> bool {
        match self {
            Self::All(_) => true,
            Self::Server(name) => **name == *server,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_view_sees_only_its_server() {
        let one = View::Server("a".into());
        assert!(one.sees("a"));
        assert!(!one.sees("b"));
        assert!(View::All(Face::Search).sees("b"));
    }
}
