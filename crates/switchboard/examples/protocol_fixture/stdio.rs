//! Lines on standard input and output.

use std::{collections::BTreeMap, io, sync::Arc, sync::Mutex};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    sync::oneshot,
};

use crate::{
    feed::{Feed, Next, held},
    legacy, modern,
    options::Revision,
    rpc::{self, Fault, Incoming, Message},
    session::Session,
    world::World,
};

/// Serves until the client closes its end.
pub(crate) async fn serve(world: Arc<World>) -> io::Result<()> {
    let feed = Arc::new(Feed::new());
    let session = Arc::new(Session::new(feed.clone()));
    world.add_session(&session);
    let pipe = Arc::new(Pipe {
        world,
        session,
        feed: feed.clone(),
        running: Mutex::default(),
    });
    let writer = tokio::spawn(write(feed.clone()));
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        match Incoming::parse(line.as_bytes()) {
            Ok(incoming) => pipe.take(incoming).await,
            Err(fault) => feed.push(rpc::response(&serde_json::Value::Null, &Err(fault))),
        }
    }
    pipe.session.end();
    writer.await.map_err(io::Error::other)?
}

async fn write(feed: Arc<Feed>) -> io::Result<()> {
    let mut out = tokio::io::stdout();
    let mut place = 0;
    loop {
        match feed.next(place, feed.cuts()).await {
            Next::Message(message) => {
                out.write_all(format!("{message}\n").as_bytes()).await?;
                out.flush().await?;
                place += 1;
                feed.forget(place);
            }
            // There is one pipe only, and it is not closed for a while.
            Next::Cut => {}
            Next::Ended => return Ok(()),
        }
    }
}

struct Pipe {
    world: Arc<World>,
    session: Arc<Session>,
    feed: Arc<Feed>,
    /// Requests of the newest revision. To drop one is to cancel it.
    running: Mutex<BTreeMap<String, oneshot::Sender<()>>>,
}

impl Pipe {
    async fn take(self: &Arc<Self>, incoming: Incoming) {
        let batches = self.session.revision() == Some(Revision::V2025_03_26);
        if incoming.batch && !batches {
            let fault = Fault::new(rpc::INVALID_REQUEST, "No batches in this revision");
            return self
                .feed
                .push(rpc::response(&serde_json::Value::Null, &Err(fault)));
        }
        for message in incoming.messages {
            let options = &self.world.options;
            let legacy = options.newest_legacy().is_some();
            if options.modern() && (!legacy || modern::speaks(&message)) {
                self.take_modern(message);
            } else {
                self.take_legacy(message).await;
            }
        }
    }

    async fn take_legacy(self: &Arc<Self>, message: Message) {
        let method = message.method.clone().unwrap_or_default();
        if method == "notifications/cancelled" {
            self.cancel(&message);
        }
        let (world, session, feed) = (self.world.clone(), self.session.clone(), self.feed.clone());
        let work = legacy::handle(world, session, message, feed);
        if legacy::takes_long(&method) {
            tokio::spawn(work);
        } else {
            work.await;
        }
    }

    fn take_modern(self: &Arc<Self>, message: Message) {
        if message.method.as_deref() == Some("notifications/cancelled") {
            return self.cancel(&message);
        }
        let Some(id) = message.id.as_ref().map(ToString::to_string) else {
            return;
        };
        let (guard, cancelled) = oneshot::channel();
        held(&self.running).insert(id.clone(), guard);
        let own = self.clone();
        tokio::spawn(async move {
            modern::handle(own.world.clone(), message, own.feed.clone(), cancelled).await;
            held(&own.running).remove(&id);
        });
    }

    fn cancel(&self, message: &Message) {
        let id = message.params()["requestId"].to_string();
        held(&self.running).remove(&id);
    }
}
