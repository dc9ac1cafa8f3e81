//! The room for requests that wait for a person: bounded in all, for each server and for each client.

use std::{collections::HashMap, sync::Arc};

use crate::{
    broker::{BYTES_MAX, OPEN_EACH, OPEN_MAX, REQUEST_BYTES, SAMPLING_BYTES, SHARES},
    record::{Ask, Kind},
};

/// The most bytes of the requests of one server at a time.
const BYTES_EACH: usize = BYTES_MAX / 4;

/// The room that is taken.
#[derive(Debug, Default)]
pub(crate) struct Room {
    all: Load,
    servers: HashMap<Arc<str>, ServerLoad>,
    clients: HashMap<u64, Load>,
    /// The requests of all clients over HTTP.
    web: Load,
}

/// A number of requests, and their bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    count: usize,
    bytes: usize,
}

/// The requests about one server: all of them, and those of clients over HTTP.
#[derive(Clone, Copy, Debug, Default)]
struct ServerLoad {
    all: Load,
    web: Load,
}

impl Load {
    fn add(&mut self, weight: usize) {
        self.count += 1;
        self.bytes += weight;
    }

    /// Takes a request out. Returns if none is left.
    fn subtract(&mut self, weight: usize) -> bool {
        self.count = self.count.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(weight);
        self.count == 0
    }
}

impl Room {
    /// Returns why there is no room for a new request, if there is none.
    pub(crate) fn refuses(&self, ask: &Ask) -> Option<&'static str> {
        let weight = weight(ask);
        let of_client = self.clients.get(&ask.holder.client).copied();
        let of_client = of_client.unwrap_or_default();
        let of_server = self.servers.get(&ask.server).copied().unwrap_or_default();
        let is_full = |load: Load, count: usize, bytes: usize| {
            load.count >= count || load.bytes + weight > bytes
        };
        let most = match ask.kind {
            Kind::Sampling => SAMPLING_BYTES,
            // The gateway itself asks, and bounds it.
            Kind::Trust => usize::MAX,
            Kind::Elicitation | Kind::ToolCall | Kind::Resource | Kind::Prompt => REQUEST_BYTES,
        };
        if ask.request.as_bytes().len() > most {
            Some("the request is too long to be put to a person")
        } else if is_full(of_client, OPEN_MAX / SHARES, BYTES_MAX / SHARES) {
            Some("too many requests of this client wait for a person")
        } else if ask.holder.is_web && is_full(self.web, OPEN_MAX / 2, BYTES_MAX / 2) {
            Some("too many requests of clients over HTTP wait for a person")
        } else if is_full(of_server.all, OPEN_EACH, BYTES_EACH)
            || ask.holder.is_web && is_full(of_server.web, OPEN_EACH / 2, BYTES_EACH / 2)
        {
            Some("too many requests of this server wait for a person")
        } else if is_full(self.all, OPEN_MAX, BYTES_MAX) {
            Some("too many requests wait for a person")
        } else {
            None
        }
    }

    /// Takes room for a request.
    pub(crate) fn take(&mut self, ask: &Ask) {
        let weight = weight(ask);
        self.all.add(weight);
        let server = Arc::clone(&ask.server);
        let of_server = self.servers.entry(server).or_default();
        of_server.all.add(weight);
        if ask.holder.is_web {
            of_server.web.add(weight);
        }
        if ask.holder.client != 0 {
            let client = self.clients.entry(ask.holder.client);
            client.or_default().add(weight);
        }
        if ask.holder.is_web {
            self.web.add(weight);
        }
    }

    /// Gives back the room of a request.
    pub(crate) fn give_back(&mut self, ask: &Ask) {
        let weight = weight(ask);
        self.all.subtract(weight);
        if let Some(of_server) = self.servers.get_mut(&ask.server) {
            if ask.holder.is_web {
                of_server.web.subtract(weight);
            }
            if of_server.all.subtract(weight) {
                self.servers.remove(&ask.server);
            }
        }
        let client = &ask.holder.client;
        let of_client = self.clients.get_mut(client);
        if of_client.is_some_and(|load| load.subtract(weight)) {
            self.clients.remove(client);
        }
        if ask.holder.is_web {
            self.web.subtract(weight);
        }
    }
}

fn weight(ask: &Ask) -> usize {
    ask.request.as_bytes().len() + ask.tool.as_deref().map_or(0, str::len) + 1024
}
