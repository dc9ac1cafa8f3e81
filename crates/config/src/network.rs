//! Networks of containers.

/// The network of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// No network. This is the default.
    #[default]
    None,
    /// The engine's default network.
    Default,
    /// The network with this name.
    Named(String),
}

impl Network {
    /// A network by its name. The engine's `none` means no network.
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "none" => Self::None,
            name => Self::Named(name.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Transport, parse};

    #[test]
    fn network_setting_is_parsed() {
        let named = |name: &str| Network::Named(name.to_owned());
        for (isolation, network) in [
            ("", Network::None),
            (r#", "isolation": {}"#, Network::None),
            (r#", "isolation": {"network": false}"#, Network::None),
            (r#", "isolation": {"network": "none"}"#, Network::None),
            (r#", "isolation": {"network": true}"#, Network::Default),
            (r#", "isolation": {"network": "web"}"#, named("web")),
        ] {
            let text = format!(r#"{{"mcpServers": {{"s": {{"image": "i"{isolation}}}}}}}"#);
            let config = parse(&text, "sample").unwrap();
            let Transport::Container(container) = &config.servers["s"].transport else {
                panic!("{text}");
            };
            assert_eq!(container.network, network, "{text}");
        }
    }
}
