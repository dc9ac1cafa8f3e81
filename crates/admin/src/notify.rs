//! Escalation of approval requests: messages to a webhook, and desktop notifications.
//!
//! One task receives the events of approval requests and reads the configuration at each of them, so that a
//! change applies immediately. Messages for the webhook wait in a short queue and are sent one at a time;
//! neither they nor the desktop ever delay the source of the events.

mod desktop;
mod webhook;

use std::{
    collections::VecDeque,
    ffi::OsString,
    path::PathBuf,
    sync::{Arc, Weak},
    time::Duration,
};

use switchboard_base::scrub;
use switchboard_client::Raw;
use switchboard_config::{Config, Notify};
use switchboard_core::{approvals::notifier::Event, core::Core};
use switchboard_inbound::inbound::Inbound;
use switchboard_wire::with_hint;
use tokio::{
    sync::broadcast::{Receiver, error::RecvError},
    task::JoinSet,
};

use crate::notify::{
    desktop::Desktop,
    webhook::{Delivery, Message},
};

/// The prefix of every kind of event about an approval.
const APPROVAL: &str = "approval.";
/// The kind of event that escalates a request to the desktop.
const ESCALATED: &str = "escalated";
/// The most messages queued for the webhook; then the oldest is dropped.
const QUEUE_MAX: usize = 64;
/// The most notifications shown at the same time; further ones are dropped.
const SHOWN_MAX: usize = 4;
/// Time to wait before the second and the third attempt at the webhook.
const BACKOFF: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];

/// The settings at the moment of an event.
#[derive(Debug, Clone)]
pub(crate) struct Now {
    config: Arc<Config>,
    /// Host and port of the console.
    console: Option<Box<str>>,
    /// The directory of secrets.
    secrets: PathBuf,
}

/// The source of the settings, and the environment.
struct Surroundings<N, E> {
    /// Returns `None` when the gateway is gone.
    now: N,
    env: E,
    backoff: &'static [Duration],
}

/// Starts the task, which ends with the gateway.
pub(crate) fn start(core: &Core, inbound: &Arc<Inbound>) {
    let events = core.approvals.notifier.subscribe();
    let environment = Arc::clone(&core.environment);
    let inbound = Arc::downgrade(inbound);
    let surroundings = Surroundings {
        now: move || now(&inbound),
        env: move |name: &str| environment.get(name).map(Into::into),
        backoff: &BACKOFF,
    };
    tokio::spawn(surroundings.attend(events));
}

fn now(inbound: &Weak<Inbound>) -> Option<Now> {
    let inbound = inbound.upgrade()?;
    Some(Now {
        config: inbound.core.config.load_full(),
        console: inbound.console_host().map(Into::into),
        secrets: inbound.core.home.secrets(),
    })
}

impl<N, E> Surroundings<N, E>
where
    N: Fn() -> Option<Now>,
    E: Fn(&str) -> Option<OsString>,
{
    async fn attend(self, mut events: Receiver<Arc<Event>>) {
        let mut queue = VecDeque::new();
        let mut deliveries = JoinSet::new();
        let mut shown = JoinSet::new();
        loop {
            while deliveries.is_empty()
                && let Some(message) = queue.pop_front()
            {
                if let Some(delivery) = self.delivery(message) {
                    deliveries.spawn(delivery.carry_out(self.backoff));
                }
            }
            let event = tokio::select! {
                event = events.recv() => event,
                Some(_) = deliveries.join_next() => continue,
                Some(_) = shown.join_next() => continue,
            };
            let event = match event {
                Ok(event) => event,
                Err(RecvError::Lagged(missed)) => {
                    tracing::warn!(
                        missed,
                        "Too many events at once; the gateway skipped some notifications."
                    );
                    continue;
                }
                Err(RecvError::Closed) => return,
            };
            let Some(kind) = event.kind.strip_prefix(APPROVAL) else {
                continue;
            };
            let Some(now) = (self.now)() else {
                return;
            };
            let approvals = &now.config.approvals;
            let console = console(now.console.as_deref(), &event.approval);
            if kind == ESCALATED
                && approvals.notify == Notify::Auto
                && shown.len() < SHOWN_MAX
                && let Some(desktop) = Desktop::find(&self.env)
            {
                let shows = desktop.show(
                    &event.approval,
                    console.as_deref(),
                    Desktop::variables(&self.env),
                );
                shown.spawn(shows);
            }
            let is_wanted = |on: &[String]| on.iter().any(|wanted| wanted == kind);
            if approvals
                .webhook
                .as_ref()
                .is_some_and(|hook| is_wanted(&hook.on))
            {
                if queue.len() == QUEUE_MAX {
                    queue.pop_front();
                    tracing::warn!(
                        "The webhook is too slow, so the gateway dropped its oldest message."
                    );
                }
                queue.push_back(Message::new(&event, console.as_deref()));
            }
        }
    }

    /// The delivery of a message under the current settings; `None` if the webhook is gone or cannot be used.
    fn delivery(&self, message: Message) -> Option<Delivery> {
        let now = (self.now)()?;
        let webhook = now.config.approvals.webhook.as_ref()?;
        let resolved = webhook.resolve(&now.secrets, &self.env);
        let resolved = resolved.inspect_err(|error| {
            tracing::warn!(error = %with_hint(error, error.hint()), "Cannot use the webhook.");
        });
        let resolved = resolved.ok()?;
        let registered = scrub::register(scrub::Owner::Webhook, &resolved.secrets);
        let registered = registered.inspect_err(|error| {
            let error = with_hint(format_args!("it has {error}"), Some(error.hint()));
            tracing::warn!(%error, "Cannot use the webhook.");
        });
        registered.ok()?;
        Some(Delivery::new(message, &resolved.value))
    }
}

/// The address of the console's page for the approval.
fn console(host: Option<&str>, approval: &Raw) -> Option<String> {
    let id = approval.member("id").and_then(|id| id.to_text());
    let id = id.unwrap_or_default();
    let is_id = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let page = if is_id {
        format!("/{id}")
    } else {
        String::new()
    };
    Some(format!("http://{}/#approvals{page}", host?))
}

#[cfg(test)]
mod tests;
