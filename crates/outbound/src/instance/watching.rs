//! Subscribes to a resource of a server on behalf of a client.

use std::{
    borrow::Cow,
    sync::{Arc, Weak},
    time::Duration,
};

use switchboard_base::{caller::Caller, error::Error, notifications::NotificationQueue};
use switchboard_catalog::Kind;
use switchboard_client as client;
use switchboard_wire::code;
use tokio::time::timeout;

use super::{Admission, Instance};
use crate::{clock, live::Live, subscriptions::Reservation};

/// Time to wait for the second connection.
const OTHER_PATIENCE: Duration = Duration::from_secs(5);

/// A subscription of a client to a resource, until dropped.
#[derive(Debug)]
pub struct Watch {
    instance: Weak<Instance>,
    uri: String,
    number: u64,
    _place: Reservation,
}

impl Instance {
    /// Subscribes to a resource. The server is started if necessary, and sent the request unless it is
    /// already subscribed.
    pub async fn watch(
        self: &Arc<Self>,
        caller: &Caller,
        uri: &str,
        notifications: &Arc<NotificationQueue>,
        exposed: bool,
    ) -> Result<Watch, Error> {
        let until = clock::now() + self.request_timeout();
        let live = self.ready(until, None, None).await?;
        let resource = [Some((Kind::Resource, Cow::Borrowed(uri))), None, None];
        if self.admit(&live, &resource, until).await? != Admission::Yes {
            return Err(self.initializing());
        }
        let place = self
            .deps
            .subscription_budget
            .take(caller.realm.principal, uri);
        let place = place.ok_or_else(|| {
            Error::invalid_params("clients have too many subscriptions; unsubscribe from some")
        })?;
        let _asking = self.watched.turn().await;
        let known = self.watched.contains(uri);
        if !known && self.watched.is_full(uri) {
            let message = "this server has too many subscriptions";
            return Err(Error::invalid_params(message));
        }
        // Registered before the request, because the server may report a change together with its response.
        let mut watch = Watch {
            instance: Arc::downgrade(self),
            uri: uri.to_owned(),
            number: self.watched.add(uri, caller, notifications, exposed),
            _place: place,
        };
        // The server may ask something meanwhile, which must not go to another client.
        let ear = (!known).then(|| self.questions.open_mute(caller));
        let asked = match &ear {
            None => Ok(()),
            Some(_) => self.subscribe(&live, uri).await,
        };
        if let (Some(ear), Ok(()) | Err(client::Error::Server(_))) = (&ear, &asked) {
            ear.set_answered();
        }
        if let Err(error) = asked {
            // The server has no subscription to cancel.
            self.watched.remove(uri, watch.number);
            watch.instance = Weak::new();
            return Err(match error {
                client::Error::NotOffered { what } => {
                    Error::invalid_params(format!("the server does not offer {what}"))
                }
                client::Error::Server(error) if error.code == code::URL_ELICITATION_REQUIRED => {
                    let message =
                        "the server asks the user to open a URL, which a subscription cannot do";
                    Error::invalid_params(message)
                }
                error => Error::of(&self.name, error),
            });
        }
        Ok(watch)
    }

    /// Subscribes on this connection and on the server's other one: a change that a call makes there is
    /// reported there. One success is enough.
    async fn subscribe(&self, live: &Arc<Live>, uri: &str) -> Result<(), client::Error> {
        let asking = live.client().subscribe(uri);
        let Some(other) = self.lives().find(|other| !Arc::ptr_eq(other, live)) else {
            return asking.await;
        };
        let elsewhere = timeout(OTHER_PATIENCE, other.client().subscribe(uri));
        let (asked, elsewhere) = tokio::join!(asking, elsewhere);
        match elsewhere {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => asked,
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let Some(instance) = self.instance.upgrade() else {
            return;
        };
        if !instance.watched.remove(&self.uri, self.number) {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let uri = std::mem::take(&mut self.uri);
        runtime.spawn(async move {
            let _asking = instance.watched.turn().await;
            let wanted = instance.watched.contains(&uri);
            for live in instance.lives().filter(|_| !wanted) {
                // If this fails, the notifications of the server are ignored.
                let _ = live.client().unsubscribe(&uri).await;
            }
        });
    }
}
