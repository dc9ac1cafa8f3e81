//! Clients that ask for too much or for nonsense, or that do not read: others are not affected.

use std::{
    io,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use switchboard_test_support::{processes::resident, until};

use super::{MODERN_PIPE, OLDER, OLDER_PIPE, open, with_gateway};
use crate::{
    client::{
        Client, PATIENCE, Place, Reason, Sent, call_of, check,
        web::{Events, Web},
        with_progress,
    },
    features::{counted, listen},
    rig::through,
};

/// The limit of open streams per client, and the number that the test tries to open.
const STREAMS: usize = 64;
const TRIED: usize = 300;

#[test]
fn too_many_streams_on_a_pipe_are_refused() {
    with_gateway(OLDER_PIPE, json!({}), |serve| {
        let mut client = open(serve, OLDER_PIPE, MODERN_PIPE)?;
        let wanted = json!({ "toolsListChanged": true });
        let mut sent = Vec::new();
        for _ in 0..TRIED {
            let params = json!({ "notifications": wanted });
            sent.push(client.send("subscriptions/listen", params)?);
        }
        let (open, refused) = sent.split_at(STREAMS);
        for sent in refused {
            let answer = client.wait(sent)?;
            check!(answer["error"]["code"].is_number(), "{answer}");
        }
        for sent in open {
            acknowledged(&mut client, sent)?;
        }
        client.call("test_simple_text", json!({}))?;

        for sent in open {
            client.cancel(sent)?;
        }
        until("there is room for another stream", || {
            listen(&mut client, wanted.clone()).ok()
        });
        client.door.hang_up();
        Ok(())
    });
}

fn acknowledged(client: &mut Client, sent: &Sent) -> Result<(), Reason> {
    client.until(0, "an acknowledgement", |seen| {
        seen.is_notification("notifications/subscriptions/acknowledged")
            && seen.params()["_meta"]["io.modelcontextprotocol/subscriptionId"] == sent.id
    })?;
    Ok(())
}

#[test]
fn every_last_event_id_is_answered() {
    with_gateway(OLDER_PIPE, json!({}), |serve| {
        let mut client = open(serve, OLDER_PIPE, OLDER)?;
        let from = client.now();
        let call = call_of("test_progress_burst", json!({ "count": 2 }));
        client.result("tools/call", with_progress(call, &json!("told")))?;
        let mut heard = client.seen[from..].iter();
        let known = heard.find_map(|seen| seen.event_id.as_ref());
        let known = known.ok_or("the events have no ids")?;
        let (stream, _) = known.split_once('_').ok_or("another kind of id")?;
        let last = u64::MAX;
        let odd = [
            format!("0_{last}"),
            format!("{stream}_{last}"),
            format!("{last}_{last}"),
            format!("{stream}_{last}0"),
            format!("{stream}_-1"),
        ];
        let more = ["x", "1_", "_1", "_", "99_0", "-1_0", "1_2_3"];
        for id in odd.iter().map(String::as_str).chain(more) {
            let status = resumed(&mut client, id).map_err(|error| format!("{id}: {error}"))?;
            check!((200..500).contains(&status), "{id}: {status}");
            client.result("ping", json!({}))?;
        }
        Ok(())
    });
}

/// Resumes a stream after this event, and returns the status of the response.
fn resumed(client: &mut Client, id: &str) -> io::Result<u16> {
    let place = client.place.clone();
    let session = client.door.http().and_then(|http| http.session.clone());
    let mut headers = place.headers("text/event-stream");
    headers.push(("Mcp-Session-Id".to_owned(), session.unwrap_or_default()));
    headers.push(("Last-Event-ID".to_owned(), id.to_owned()));
    let mut web = connect(&place)?;
    web.send("GET", &place.http_path, &headers, b"")?;
    Ok(web.head()?.status)
}

/// A connection with a read timeout longer than anything takes.
fn connect(place: &Place) -> io::Result<Web> {
    let web = Web::connect(place.address)?;
    web.hold()?.set_read_timeout(Some(PATIENCE))?;
    Ok(web)
}

/// The number of calls, and the size of each result. The gateway keeps the results of the calls that one
/// client may have in flight at once, which are some hundred, and no others.
const CALLS: u64 = 2000;
const KILOBYTES: u64 = 100;
/// The most bytes that may be kept for a client that does not read.
const KEPT: u64 = 100_000_000;

#[test]
fn client_that_does_not_read_is_cheap() {
    with_gateway(OLDER_PIPE, json!({}), |serve| {
        let mut other = open(serve, OLDER_PIPE, OLDER)?;
        other.call("test_large", json!({ "kilobytes": KILOBYTES }))?;
        let before = resident(serve.pid());
        let mut most = before;

        let mut deaf = Deaf::open(&through(serve)).map_err(|error| error.to_string())?;
        let first = counted(&mut other, "tools/call")?;
        for id in 1..=CALLS {
            let call = call_of("test_large", json!({ "kilobytes": KILOBYTES }));
            deaf.post(json!({ "id": id, "method": "tools/call", "params": call }))
                .map_err(|error| error.to_string())?;
            most = most.max(resident(serve.pid()));
        }
        // Waits until all calls are answered, or none was for a while.
        let (mut answered, mut own) = (0, 0);
        let a_while = Duration::from_secs(2);
        let mut end = Instant::now() + a_while;
        while answered < CALLS && Instant::now() < end {
            own += 1;
            let now = counted(&mut other, "tools/call")? - first - own;
            if now != answered {
                (answered, end) = (now, Instant::now() + a_while);
            }
            most = most.max(resident(serve.pid()));
        }
        check!(answered > 0, "nothing was called");
        let grown = most - before;
        check!(grown < KEPT, "{grown} bytes more after {answered} calls");
        Ok(())
    });
}

/// A client over HTTP+SSE that never reads.
struct Deaf {
    /// Open, but never read.
    _events: Events,
    web: Web,
    place: Place,
    endpoint: String,
}

impl Deaf {
    fn open(place: &Place) -> io::Result<Self> {
        let mut web = connect(place)?;
        let headers = place.headers("text/event-stream");
        web.send("GET", &place.sse_path, &headers, b"")?;
        web.head()?;
        let mut events = Events::of(web);
        let endpoint = events.next()?.ok_or(io::ErrorKind::UnexpectedEof)?.data;
        let mut deaf = Self {
            _events: events,
            web: connect(place)?,
            place: place.clone(),
            endpoint,
        };
        let params = json!({
            "protocolVersion": "2024-11-05",
            "capabilities": {},
            "clientInfo": { "name": "deaf", "version": "1" },
        });
        deaf.post(json!({ "id": 0, "method": "initialize", "params": params }))?;
        deaf.post(json!({ "method": "notifications/initialized" }))?;
        Ok(deaf)
    }

    fn post(&mut self, mut message: Value) -> io::Result<()> {
        message["jsonrpc"] = json!("2.0");
        let headers = self.place.headers("application/json");
        let body = message.to_string();
        self.web
            .send("POST", &self.endpoint, &headers, body.as_bytes())?;
        let head = self.web.head()?;
        let said = self.web.body(&head)?;
        match head.status {
            202 => Ok(()),
            status => Err(io::Error::other(format!("{status} {said}"))),
        }
    }
}
