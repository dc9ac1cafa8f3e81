//! Parts that a tour skips, because one of the two libraries does not support them.

use crate::{
    clients::{Client, Era},
    servers::{Server, Transport},
};

/// A part that is skipped, and the peers that this applies to.
struct LeftOut {
    part: &'static str,
    client: Option<Client>,
    era: Option<Era>,
    server: Option<Server>,
    transport: Option<Transport>,
    #[allow(dead_code, reason = "for those who read the table")]
    why: &'static str,
}

const ANY: LeftOut = LeftOut {
    part: "",
    client: None,
    era: None,
    server: None,
    transport: None,
    why: "",
};

const TABLE: &[LeftOut] = &[
    LeftOut {
        part: "update",
        client: Some(Client::Fastmcp),
        why: "it has no way to subscribe to a resource",
        ..ANY
    },
    LeftOut {
        part: "change",
        client: Some(Client::Fastmcp),
        era: Some(Era::Modern),
        why: "it has no way to listen for changes",
        ..ANY
    },
    LeftOut {
        part: "update",
        server: Some(Server::Fastmcp),
        why: "it knows no subscriptions",
        ..ANY
    },
    LeftOut {
        part: "change",
        server: Some(Server::Fastmcp),
        why: "in the newest revision, in which the gateway speaks to it, it tells of no changes",
        ..ANY
    },
    LeftOut {
        part: "update",
        era: Some(Era::Legacy),
        server: Some(Server::Python),
        why: "in the older revisions, in which the gateway speaks to it for an older client, it knows no subscriptions",
        ..ANY
    },
    LeftOut {
        part: "log",
        era: Some(Era::Legacy),
        server: Some(Server::Python),
        why: "it does not declare logging, so that an older client has no level to set",
        ..ANY
    },
    LeftOut {
        part: "log",
        era: Some(Era::Modern),
        server: Some(Server::OldRust),
        transport: Some(Transport::Http),
        why: "it sends log messages on another stream than the result, so that one may arrive after the call, when a client of the newest revision can no longer receive it",
        ..ANY
    },
];

/// Tests if this part of the tour is skipped.
pub(crate) fn is_left_out(
    part: &str,
    (client, era): (Client, Era),
    (server, transport): (Server, Transport),
) -> bool {
    fn is_about<T: PartialEq>(of: Option<T>, this: T) -> bool {
        of.is_none_or(|of| of == this)
    }
    TABLE.iter().any(|row| {
        row.part == part
            && is_about(row.client, client)
            && is_about(row.era, era)
            && is_about(row.server, server)
            && is_about(row.transport, transport)
    })
}
