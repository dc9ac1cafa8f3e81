//! The edges: where clients come in.
//!
//! An edge reads messages, knows whom they come from, asks the [desk](crate::desk) and writes the
//! answers. It decides nothing about servers.

pub(crate) mod gate;
pub(crate) mod http;
pub(crate) mod pipe;
pub(crate) mod session;
pub(crate) mod stream;

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use memchr::memmem::Finder;
use switchboard_client::{Id, Raw};
use switchboard_wire::{Era, Notification, Request, encode, meta, method};

use crate::{call::Progress, context::Context, desk::View};

/// Whether a request belongs to the newer world: it says its revision itself. Most do not, and are
/// told by a glance at the bytes.
fn era_of(frame: &[u8], params: Option<&Raw>) -> Era {
    static SAYS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(meta::PROTOCOL_VERSION));
    let says = SAYS.find(frame).is_some()
        && params
            .and_then(|params| params.member(meta::META))
            .is_some_and(|meta| meta.member(meta::PROTOCOL_VERSION).is_some());
    if says { Era::Modern } else { Era::Legacy }
}

/// The token under which a client wants to hear of a request's progress.
fn progress_token(request: &Request) -> Option<Raw> {
    static SAYS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"progressToken\""));
    SAYS.find(request.frame())?;
    let token = request
        .params
        .as_ref()?
        .member(meta::META)?
        .member(meta::PROGRESS_TOKEN)?;
    // A string or a number; what is neither could not be matched by anyone.
    (Id::from_raw(token.clone()).is_some()).then_some(token)
}

/// Hands what a server says of a call's progress to `send`, under the client's own token.
fn progress_to(token: Raw, mut send: impl FnMut(Bytes) + Send + 'static) -> Progress {
    Box::new(move |params| {
        if let Ok(params) = params.with_member(meta::PROGRESS_TOKEN, &token) {
            send(encode::notification(method::PROGRESS, Some(&params)));
        }
    })
}

/// The request that a client withdraws.
fn withdrawn(notification: &Notification) -> Option<Id> {
    if notification.method != method::CANCELLED {
        return None;
    }
    Id::from_raw(notification.params.as_ref()?.member("requestId")?)
}

/// What a client has been shown, by its fingerprints: tells which lists have changed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shown {
    tools: u64,
    prompts: u64,
    resources: u64,
}

impl Shown {
    pub(crate) fn now(context: &Context, view: &View) -> Self {
        let catalogue = context.shelf.catalogue();
        match view {
            View::Direct => Self {
                tools: catalogue.tools_hash(),
                prompts: catalogue.prompts_hash(),
                resources: catalogue.resources_hash(),
            },
            View::Server(name) => match catalogue.server(name) {
                None => Self {
                    tools: 0,
                    prompts: 0,
                    resources: 0,
                },
                Some(part) => Self {
                    tools: part.tools_hash(),
                    prompts: part.prompts_hash(),
                    resources: part.resources_hash(),
                },
            },
        }
    }

    /// The notifications for what differs from `before`.
    pub(crate) fn changes_since(self, before: Self) -> Vec<Bytes> {
        [
            (
                self.tools != before.tools,
                "notifications/tools/list_changed",
            ),
            (
                self.prompts != before.prompts,
                "notifications/prompts/list_changed",
            ),
            (
                self.resources != before.resources,
                "notifications/resources/list_changed",
            ),
        ]
        .into_iter()
        .filter(|(changed, _)| *changed)
        .map(|(_, method)| encode::notification(method, None))
        .collect()
    }
}

/// Draws a number that tells one client from another.
pub(crate) fn client_key() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Relaxed)
}

/// A client that has not said its name.
pub(crate) fn nameless() -> Arc<str> {
    "unknown".into()
}
