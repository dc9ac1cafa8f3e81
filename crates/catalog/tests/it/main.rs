//! Tests of the public interface of the catalog.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may fail"
)]

mod lists;
mod mends;
mod names;
mod pages;
mod snapshots;
mod speed;
mod uris;

use std::sync::Arc;

use switchboard_catalog::{Offers, Presented, ServerPart};
use switchboard_wire::Raw;

fn raw(text: impl Into<String>) -> Raw {
    Raw::parse(text.into()).unwrap()
}

fn named(name: &str) -> Raw {
    Raw::object([("name", Raw::string(name))])
}

fn tool(name: &str) -> Raw {
    let schema = Raw::object([("type", Raw::string("object"))]);
    Raw::object([("name", Raw::string(name)), ("inputSchema", schema)])
}

fn tools(names: impl IntoIterator<Item = impl AsRef<str>>) -> Offers {
    Offers {
        tools: names.into_iter().map(|name| tool(name.as_ref())).collect(),
        ..Offers::default()
    }
}

fn part(server: &str, offers: Offers) -> Arc<ServerPart> {
    Arc::new(ServerPart::prepare(server, Arc::new(offers), &|_, _, _| {
        Presented::Unchanged
    }))
}
