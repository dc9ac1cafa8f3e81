//! The capacity for requests that wait for a person: bounded in total, per server and per client.

use std::{collections::HashMap, sync::Arc};

use crate::{
    broker::{BYTES_MAX, OPEN_EACH, OPEN_MAX, REQUEST_BYTES, SAMPLING_BYTES, SHARES},
    record::{Ask, Holder, Kind},
};

/// The most bytes of waiting requests of one server.
const BYTES_EACH: usize = BYTES_MAX / 4;

/// The number of clients over HTTP that together can use up their limit for one server.
const WEB_SHARES: usize = 4;

/// The capacity that is in use.
#[derive(Debug, Default)]
pub(crate) struct Capacity {
    all: Load,
    servers: HashMap<Arc<str>, ServerLoad>,
    clients: HashMap<u64, Load>,
    web: WebLoad,
}

/// A number of requests, and their total size.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    count: usize,
    bytes: usize,
}

/// The requests of all clients over HTTP, and of the clients among them without a token.
#[derive(Clone, Copy, Debug, Default)]
struct WebLoad {
    all: Load,
    strangers: Load,
}

/// The requests about one server: all of them, those of clients over HTTP, and those of each such client.
#[derive(Debug, Default)]
struct ServerLoad {
    all: Load,
    web: WebLoad,
    clients: HashMap<u64, Load>,
}

impl Load {
    fn add(&mut self, weight: usize) {
        self.count += 1;
        self.bytes += weight;
    }

    /// Tests if a request of this weight exceeds a limit of requests and bytes.
    fn is_full(&self, weight: usize, (count, bytes): (usize, usize)) -> bool {
        self.count >= count || self.bytes + weight > bytes
    }

    /// Removes a request. Returns `true` if none is left.
    fn subtract(&mut self, weight: usize) -> bool {
        self.count = self.count.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(weight);
        self.count == 0
    }
}

impl WebLoad {
    fn add(&mut self, holder: Holder, weight: usize) {
        self.all.add(weight);
        if holder.is_stranger {
            self.strangers.add(weight);
        }
    }

    fn subtract(&mut self, holder: Holder, weight: usize) {
        self.all.subtract(weight);
        if holder.is_stranger {
            self.strangers.subtract(weight);
        }
    }

    /// Tests if a request exceeds half of a limit, or a quarter of it for a client without a token.
    fn is_full(&self, holder: Holder, weight: usize, (count, bytes): (usize, usize)) -> bool {
        self.all.is_full(weight, (count / 2, bytes / 2))
            || holder.is_stranger && self.strangers.is_full(weight, (count / 4, bytes / 4))
    }
}

impl Capacity {
    /// The reason why there is no capacity for a new request, if there is none.
    pub(crate) fn refuses(&self, ask: &Ask) -> Option<&'static str> {
        let weight = weight(ask);
        let holder = ask.holder;
        let of_client = self.clients.get(&holder.client).copied();
        let of_client = of_client.unwrap_or_default();
        let nothing = ServerLoad::default();
        let of_server = self.servers.get(&ask.server).unwrap_or(&nothing);
        let of_both = of_server.clients.get(&holder.client).copied();
        let of_both = of_both.unwrap_or_default();
        let all = (OPEN_MAX, BYTES_MAX);
        let each = (OPEN_EACH, BYTES_EACH);
        let share = |(count, bytes): (usize, usize), of: usize| (count / of, bytes / of);
        let is_clients = is_clients(ask);
        let is_web = is_clients && holder.is_web;
        let most = match ask.kind {
            Kind::Sampling => SAMPLING_BYTES,
            // The gateway makes these itself, and bounds them.
            Kind::Trust => usize::MAX,
            Kind::Elicitation | Kind::ToolCall | Kind::Resource | Kind::Prompt => REQUEST_BYTES,
        };
        if ask.request.as_bytes().len() > most {
            Some("the request is too long to show to an approver")
        } else if is_clients && of_client.is_full(weight, share(all, SHARES))
            || is_web && of_both.is_full(weight, share(each, 2 * WEB_SHARES))
        {
            Some("too many requests from this client are pending")
        } else if is_web && self.web.is_full(holder, weight, all) {
            Some("too many requests from clients over HTTP are pending")
        } else if of_server.all.is_full(weight, each)
            || is_web && of_server.web.is_full(holder, weight, each)
        {
            Some("too many requests from this server are pending")
        } else if self.all.is_full(weight, all) {
            Some("too many requests are pending")
        } else {
            None
        }
    }

    /// Reserves capacity for a request.
    pub(crate) fn take(&mut self, ask: &Ask) {
        let weight = weight(ask);
        self.all.add(weight);
        let server = Arc::clone(&ask.server);
        let of_server = self.servers.entry(server).or_default();
        of_server.all.add(weight);
        if !is_clients(ask) {
            return;
        }
        let client = ask.holder.client;
        if ask.holder.is_web {
            of_server.web.add(ask.holder, weight);
            of_server.clients.entry(client).or_default().add(weight);
            self.web.add(ask.holder, weight);
        }
        self.clients.entry(client).or_default().add(weight);
    }

    /// Releases the capacity of a request.
    pub(crate) fn give_back(&mut self, ask: &Ask) {
        let weight = weight(ask);
        let is_web = is_clients(ask) && ask.holder.is_web;
        self.all.subtract(weight);
        if let Some(of_server) = self.servers.get_mut(&ask.server) {
            if is_web {
                of_server.web.subtract(ask.holder, weight);
                give_back_of(&mut of_server.clients, ask.holder.client, weight);
            }
            if of_server.all.subtract(weight) {
                self.servers.remove(&ask.server);
            }
        }
        if is_web {
            self.web.subtract(ask.holder, weight);
        }
        if is_clients(ask) {
            give_back_of(&mut self.clients, ask.holder.client, weight);
        }
    }
}

fn give_back_of(clients: &mut HashMap<u64, Load>, client: u64, weight: usize) {
    let load = clients.get_mut(&client);
    if load.is_some_and(|load| load.subtract(weight)) {
        clients.remove(&client);
    }
}

/// Tests if a client made the request. A request of a server or of the gateway does not count against a
/// client.
fn is_clients(ask: &Ask) -> bool {
    let is_request = matches!(ask.kind, Kind::ToolCall | Kind::Resource | Kind::Prompt);
    is_request && ask.holder.client != 0
}

fn weight(ask: &Ask) -> usize {
    ask.request.as_bytes().len() + ask.tool.as_deref().map_or(0, str::len) + 1024
}
