//! Listen streams, which notify a client of 2026-07-28 of changes.

use std::sync::Arc;

use bytes::Bytes;
use switchboard_base::{
    caller::Caller,
    error::Error,
    notifications::{News, NotificationQueue},
    view::View,
};
use switchboard_client::{Id, Raw};
use switchboard_core::{
    call::approval::may_watch, core::Core, dispatch::locate_resource,
    list_fingerprints::ListFingerprints,
};
use switchboard_outbound::{instance::Watch, upstream::Upstream};
use switchboard_wire::{encode, meta, method};
use tokio::sync::watch;

/// An open stream. Dropping it ends its subscriptions at servers.
#[derive(Debug)]
pub(crate) struct Listening {
    core: Arc<Core>,
    caller: Caller,
    view: View,
    id: Id,
    wanted: Wanted,
    shown: ListFingerprints,
    changes: watch::Receiver<u64>,
    notifications: Arc<NotificationQueue>,
    _watches: Vec<Watch>,
    /// The first message, which lists the notifications that will be sent.
    opening: Option<Bytes>,
    ended: bool,
}

/// The lists whose changes the client wants.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    tools: bool,
    prompts: bool,
    resources: bool,
}

/// The most resources that one stream watches.
const URIS_MAX: usize = 256;
/// The most bytes of their URIs and of the id of the stream, which are kept while it is open.
const KEPT_BYTES: usize = 256 * 1024;

impl Listening {
    /// Opens the stream that a request asks for.
    pub(crate) async fn open(
        core: &Arc<Core>,
        view: View,
        caller: &Caller,
        id: Id,
        params: Option<&Raw>,
    ) -> Result<Self, Error> {
        let filter = params
            .and_then(|params| params.member("notifications"))
            .filter(Raw::is_object)
            .ok_or_else(|| Error::invalid_params("`notifications` must be an object"))?;
        let says = |name: &str| {
            filter
                .member(name)
                .is_some_and(|is| is.as_bytes() == b"true")
        };
        let wanted = Wanted {
            tools: says("toolsListChanged"),
            prompts: says("promptsListChanged"),
            resources: says("resourcesListChanged"),
        };
        let uris: Vec<String> = match filter.member("resourceSubscriptions") {
            None => Vec::new(),
            Some(uris) => uris.read().map_err(|_| {
                Error::invalid_params("`resourceSubscriptions` must be an array of strings")
            })?,
        };
        if uris.len() > URIS_MAX {
            let message = format!("a stream can watch at most {URIS_MAX} resources");
            return Err(Error::invalid_params(message));
        }
        let bytes: usize = uris.iter().map(String::len).sum();
        if bytes + id.raw().as_bytes().len() > KEPT_BYTES {
            let message = format!(
                "the URIs of a stream and its ID are limited to {} KiB",
                KEPT_BYTES / 1024
            );
            return Err(Error::invalid_params(message));
        }
        core.scopes.of(caller.realm)?;
        // Copied: the stream may outlive the frame that it came in.
        let id = id.detached();
        // Before the servers are asked, so that a change in between is reported.
        let mut changes = core.live_catalog.changes();
        changes.borrow_and_update();
        let shown = ListFingerprints::now(core, caller, &view);
        let notifications = Arc::new(NotificationQueue::of_stream(id.raw().clone()));
        if let View::Server(server) = &view
            && wants_more(&filter)
        {
            core.audience.listen(server, caller, &notifications);
        }
        let (watches, honoured) = watch_all(core, &view, caller, uris, &notifications).await;
        let opening = acknowledgement(&id, wanted, &honoured);
        Ok(Self {
            core: Arc::clone(core),
            caller: caller.clone(),
            view,
            id,
            wanted,
            shown,
            changes,
            notifications,
            _watches: watches,
            opening: Some(opening),
            ended: false,
        })
    }

    /// The next message. The last one is the response to the request.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        if let Some(opening) = self.opening.take() {
            return Some(opening);
        }
        if self.ended {
            return None;
        }
        let core = Arc::clone(&self.core);
        loop {
            tokio::select! {
                biased;
                message = self.notifications.next() => return Some(message),
                changed = self.changes.changed() => {
                    if changed.is_err() {
                        return Some(self.end());
                    }
                    let now = ListFingerprints::now(&core, &self.caller, &self.view);
                    for said in now.changes_since(self.shown) {
                        if self.wanted.has(said)
                            && let Some(news) = News::new(None, said, None)
                        {
                            self.notifications.tell(&news);
                        }
                    }
                    self.shown = now;
                }
                () = core.lifecycle.stopped() => return Some(self.end()),
            }
        }
    }

    /// The response that ends the stream.
    pub(crate) fn end(&mut self) -> Bytes {
        self.ended = true;
        let result = Raw::object([
            ("resultType", Raw::string("complete")),
            (
                meta::META,
                Raw::object([(meta::SUBSCRIPTION_ID, self.id.raw().clone())]),
            ),
        ]);
        encode::result(&self.id, &result)
    }
}

impl Wanted {
    fn has(self, said: &str) -> bool {
        match said {
            "notifications/tools/list_changed" => self.tools,
            "notifications/prompts/list_changed" => self.prompts,
            "notifications/resources/list_changed" => self.resources,
            _ => false,
        }
    }
}

/// The notifications that the protocol itself defines for this.
const KNOWN: [&str; 4] = [
    "toolsListChanged",
    "promptsListChanged",
    "resourcesListChanged",
    "resourceSubscriptions",
];

/// Tests if a client asks for notifications of extensions, too.
fn wants_more(filter: &Raw) -> bool {
    let asked = filter.members().unwrap_or_default();
    asked.iter().any(|(name, _)| !KNOWN.contains(&&**name))
}

/// Watches the resources that can be watched. Also returns their URIs.
async fn watch_all(
    core: &Arc<Core>,
    view: &View,
    caller: &Caller,
    uris: Vec<String>,
    notifications: &Arc<NotificationQueue>,
) -> (Vec<Watch>, Vec<String>) {
    let (mut watches, mut honoured) = (Vec::new(), Vec::new());
    let mut away: Option<Arc<Upstream>> = None;
    for uri in uris {
        let Ok((upstream, own)) = locate_resource(core, caller.realm, view, &uri) else {
            continue;
        };
        let permitted = may_watch(core, caller, &upstream.name, &own).await;
        if let Err(failure) = permitted {
            tracing::debug!(%uri, reason = %failure.message(), "Cannot watch a resource.");
            continue;
        }
        // A server that is not available is waited for once.
        if away
            .as_ref()
            .is_some_and(|away| Arc::ptr_eq(away, &upstream))
        {
            continue;
        }
        let exposed = matches!(view, View::All(_));
        let instance = match upstream.instance(caller) {
            Ok(instance) => instance,
            Err(failure) => {
                tracing::debug!(%uri, reason = %failure.message(), "Cannot watch a resource.");
                continue;
            }
        };
        match instance.watch(caller, &own, notifications, exposed).await {
            Ok(watch) => {
                watches.push(watch);
                honoured.push(uri);
            }
            Err(failure) => {
                tracing::debug!(%uri, reason = %failure.message(), "Cannot watch a resource.");
                if instance.live().is_none() {
                    away = Some(upstream);
                }
            }
        }
    }
    (watches, honoured)
}

fn acknowledgement(id: &Id, wanted: Wanted, honoured: &[String]) -> Bytes {
    let lists = [
        ("toolsListChanged", wanted.tools),
        ("promptsListChanged", wanted.prompts),
        ("resourcesListChanged", wanted.resources),
    ];
    let lists = lists.into_iter().filter(|(_, wanted)| *wanted);
    let lists = lists.map(|(name, _)| (name, Raw::from(true)));
    let uris = (!honoured.is_empty()).then(|| {
        let uris = honoured.iter().map(|uri| Raw::string(uri));
        ("resourceSubscriptions", Raw::array(uris))
    });
    let params = Raw::object([
        ("notifications", Raw::object(lists.chain(uris))),
        (
            meta::META,
            Raw::object([(meta::SUBSCRIPTION_ID, id.raw().clone())]),
        ),
    ]);
    encode::notification(method::LISTEN_ACKNOWLEDGED, Some(&params))
}
