//! The spans and events of a connection, on whose names others rely.

use std::{
    future::IntoFuture,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::json;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use crate::peer::{World, builder, connect_with_depth};

#[tokio::test(start_paused = true)]
async fn every_event_has_its_name_and_fields() {
    let recorded = Recorder::default();
    // Set for the whole process: tracing caches for all threads that an event is disabled, so a thread
    // without a recorder could hide it from this one.
    tracing::subscriber::set_global_default(recorded.clone()).unwrap();
    let (client, mut listener) = connect_with_depth(builder(), 1);
    let mut peer = listener.accept_and_greet(World::Old).await;
    client.ready().await.unwrap();

    let call = tokio::spawn(client.request("good", None).into_future());
    let good = peer.expect("good").await;
    peer.answer(&good, json!({})).await;
    call.await.unwrap().unwrap();

    let late = client.request("late", None).timeout(Duration::from_secs(1));
    let late = tokio::spawn(late.into_future());
    let request = peer.expect("late").await;
    late.await.unwrap().unwrap_err();
    peer.expect("notifications/cancelled").await;
    peer.answer(&request, json!({})).await;
    peer.send(json!({"jsonrpc": "2.0", "id": 0, "result": {}}))
        .await;
    peer.send_raw("garbage").await;
    peer.send(json!({"jsonrpc": "2.0", "method": "notifications/x"}))
        .await;
    peer.send(json!({"jsonrpc": "2.0", "id": 0, "method": "ping"}))
        .await;
    peer.recv().await;

    let _fills_the_queue = tokio::spawn(client.request("first", None).into_future());
    tokio::task::yield_now().await;
    client.request("second", None).await.unwrap_err();
    client.stop().await;

    let recorded = recorded.0.lock().unwrap();
    let has = |name: &str, fields: &[&str]| {
        let found = recorded.iter().find(|(recorded, _)| recorded == name);
        let (_, recorded) = found.unwrap_or_else(|| panic!("no {name} in {recorded:?}"));
        for field in fields {
            assert!(
                recorded.iter().any(|name| name == field),
                "no {field} in {name}: {recorded:?}"
            );
        }
    };
    has("connection", &["server"]);
    has("connection.transition", &["from", "to", "reason"]);
    has("request.start", &["id", "method"]);
    has("request.stop", &["id", "duration_us"]);
    has("request.failure", &["id", "duration_us", "error"]);
    has("response.late", &["id"]);
    has("response.unknown", &["id"]);
    has("transport.busy", &["attempts"]);
    has("protocol.violation", &["reason"]);
    has("notification.received", &["method"]);
}

/// Collects the names of spans and events, and of their fields.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<Recorded>>>);

/// The name of a span or event, and the names of its fields.
type Recorded = (String, Vec<String>);

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("switchboard")
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        let mut names = Names::default();
        span.record(&mut names);
        self.0
            .lock()
            .unwrap()
            .push((span.metadata().name().to_owned(), names.0));
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut names = Names::default();
        event.record(&mut names);
        self.0
            .lock()
            .unwrap()
            .push((event.metadata().name().to_owned(), names.0));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[derive(Default)]
struct Names(Vec<String>);

impl Visit for Names {
    fn record_debug(&mut self, field: &Field, _: &dyn std::fmt::Debug) {
        self.0.push(field.name().to_owned());
    }
}
