//! Notifications with a real webhook and a real program.

use std::{path::Path, time::SystemTime};

use base64::{Engine, engine::general_purpose::STANDARD};
use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use switchboard_config::{Approvals, Webhook};
use switchboard_core::approvals::notifier::Notifier;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::mpsc,
};

use super::*;

const SECRET: &str = "s3cret-of-the-hook";
const SOON: &[Duration] = &[Duration::from_millis(1), Duration::from_millis(1)];

/// A request that the webhook received: its head in lower case, and its body.
type Got = (String, String);

/// Starts a webhook that responds with these statuses, repeating the last, and passes on the requests.
async fn address(statuses: &'static [&'static str]) -> (String, mpsc::UnboundedReceiver<Got>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let (sender, got) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        for at in 0.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            let status = statuses[at.min(statuses.len() - 1)];
            let mut bytes = Vec::new();
            let request = loop {
                let read = stream.read_buf(&mut bytes).await.unwrap();
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
                let head = head.to_lowercase();
                let length = header(&head, "content-length").parse();
                if read == 0 || length.is_ok_and(|length: usize| length == body.len()) {
                    break (head, body.to_owned());
                }
            };
            sender.send(request).unwrap();
            let answer =
                format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (format!("http://{at}/hooks/{SECRET}"), got)
}

fn header<'a>(head: &'a str, name: &str) -> &'a str {
    let value = |line: &'a str| line.strip_prefix(name)?.strip_prefix(':').map(str::trim);
    head.lines().find_map(value).unwrap_or_default()
}

fn hook(url: &str, on: &[&str]) -> Webhook {
    Webhook {
        url: url.to_owned(),
        secret: SECRET.to_owned(),
        on: on.iter().map(|&kind| kind.to_owned()).collect(),
    }
}

/// Starts the task, with settings that a test can change.
fn begin(events: &Notifier, approvals: Approvals, path: &Path) -> Arc<Mutex<Approvals>> {
    let settings = Arc::new(Mutex::new(approvals));
    let (read, path) = (Arc::clone(&settings), path.as_os_str().to_owned());
    let surroundings = Surroundings {
        now: move || {
            let config = Config {
                approvals: read.lock().clone(),
                ..Config::default()
            };
            Some(Now {
                config: Arc::new(config),
                console: Some("0123.localhost:7777".into()),
                secrets: "/none".into(),
            })
        },
        env: move |name: &str| match name {
            "DISPLAY" => Some(":0".into()),
            "PATH" => Some(path.clone()),
            _ => None,
        },
        backoff: SOON,
    };
    tokio::spawn(surroundings.attend(events.subscribe()));
    settings
}

fn told(webhook: Webhook) -> Approvals {
    Approvals {
        webhook: Some(webhook),
        notify: Notify::Off,
        ..Approvals::default()
    }
}

fn tell(events: &Notifier, kind: &'static str, id: &str) {
    let approval = json!({"id": id, "server": "files", "summary": "Delete <all>"});
    events.tell(kind, Raw::from_value(&approval).unwrap());
}

/// HMAC as RFC 2104 defines it, from the hash alone.
fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let pad = |with: u8| {
        let mut block = [with; 64];
        block
            .iter_mut()
            .zip(key)
            .for_each(|(byte, key)| *byte ^= key);
        block
    };
    let inner = Sha256::new()
        .chain_update(pad(0x36))
        .chain_update(text)
        .finalize();
    Sha256::new()
        .chain_update(pad(0x5c))
        .chain_update(inner)
        .finalize()
        .to_vec()
}

fn check_signature((head, body): &Got, key: &[u8], headers: &str) {
    let (id, timestamp) = (
        header(head, "webhook-id"),
        header(head, "webhook-timestamp"),
    );
    let expected = STANDARD.encode(hmac(key, format!("{id}.{timestamp}.{body}").as_bytes()));
    // The head is in lower case here.
    let expected = format!("v1,{expected}").to_lowercase();
    assert_eq!(header(head, "webhook-signature"), expected, "{headers}");
    let age = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let sent: u64 = timestamp.parse().unwrap();
    assert!(age.unwrap().as_secs().abs_diff(sent) < 60);
}

#[tokio::test]
async fn webhook_messages_are_signed() {
    let (url, mut got) = address(&["204 No Content"]).await;
    let events = Notifier::default();
    let settings = begin(
        &events,
        told(hook(&url, &["escalated", "decided"])),
        Path::new("/none"),
    );
    tell(&events, "approval.created", "aaaa");
    tell(&events, "approval.escalated", "k7f3q2mz");
    let first = got.recv().await.unwrap();
    check_signature(&first, SECRET.as_bytes(), "a secret as it is");
    assert!(first.0.starts_with("post /hooks/"), "{}", first.0);
    assert_eq!(header(&first.0, "content-type"), "application/json");
    let body: Value = serde_json::from_str(&first.1).unwrap();
    assert_eq!(body["type"], "approval.escalated");
    assert!(body["timestamp"].as_str().unwrap().ends_with('Z'));
    assert_eq!(
        body["data"],
        json!({
            "approval": {"id": "k7f3q2mz", "server": "files", "summary": "Delete <all>"},
            "console": "http://0123.localhost:7777/#approvals/k7f3q2mz",
        })
    );
    // A changed configuration applies immediately.
    let mut other = hook(&url, &["created"]);
    other.secret = format!("whsec_{}", STANDARD.encode(b"another"));
    settings.lock().webhook = Some(other);
    tell(&events, "approval.decided", "bbbb");
    tell(&events, "approval.created", "../<x>");
    let second = got.recv().await.unwrap();
    check_signature(&second, b"another", "a secret in base64");
    let body: Value = serde_json::from_str(&second.1).unwrap();
    assert_eq!(body["type"], "approval.created");
    assert_eq!(
        body["data"]["console"],
        "http://0123.localhost:7777/#approvals"
    );
    assert_ne!(
        header(&first.0, "webhook-id"),
        header(&second.0, "webhook-id")
    );
}

#[tokio::test]
async fn message_is_dropped_after_three_attempts() {
    let (url, mut got) =
        address(&["500 No", "302 Found\r\nlocation: /x", "404 No", "200 OK"]).await;
    let events = Notifier::default();
    begin(
        &events,
        told(hook(&url, &["escalated"])),
        Path::new("/none"),
    );
    tell(&events, "approval.escalated", "aaaa");
    tell(&events, "approval.escalated", "bbbb");
    let mut ids = Vec::new();
    for expected in ["aaaa", "aaaa", "aaaa", "bbbb"] {
        let request = got.recv().await.unwrap();
        check_signature(&request, SECRET.as_bytes(), expected);
        let body: Value = serde_json::from_str(&request.1).unwrap();
        assert_eq!(body["data"]["approval"]["id"], expected);
        assert!(
            request.0.starts_with("post /hooks/"),
            "no redirect is followed"
        );
        ids.push(header(&request.0, "webhook-id").to_owned());
    }
    assert!(
        ids[0] == ids[1] && ids[1] == ids[2] && ids[2] != ids[3],
        "{ids:?}"
    );
}

#[tokio::test]
async fn full_queue_drops_its_oldest_message() {
    let (url, mut got) = address(&["200 OK"]).await;
    let events = Notifier::default();
    begin(
        &events,
        told(hook(&url, &["escalated"])),
        Path::new("/none"),
    );
    // The task reads nothing before the first await here, so all of these arrive at once.
    for at in 0..QUEUE_MAX + 10 {
        tell(&events, "approval.escalated", &format!("a{at}"));
    }
    tell(&events, "approval.escalated", "last");
    let mut seen = Vec::new();
    while seen.last().is_none_or(|id| id != "last") {
        let (_, body) = got.recv().await.unwrap();
        let body: Value = serde_json::from_str(&body).unwrap();
        seen.push(body["data"]["approval"]["id"].as_str().unwrap().to_owned());
    }
    assert!(seen.len() <= QUEUE_MAX + 1, "{}", seen.len());
    assert!(seen.len() >= QUEUE_MAX, "{}", seen.len());
    assert!(!seen.contains(&"a5".to_owned()), "{seen:?}");
}

#[test]
fn long_approval_is_sent_without_its_request() {
    let event = Event {
        kind: "approval.created",
        at: SystemTime::now(),
        approval: Raw::object([
            ("id", Raw::string("a")),
            ("request", Raw::string(&"x".repeat(300_000))),
        ]),
    };
    let shown = format!("{:?}", Message::new(&event, None));
    assert!(
        shown.len() < 1_000 && shown.contains("truncated"),
        "{shown}"
    );
}

/// The log output of this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().clone()).unwrap()
    }
}

#[tokio::test]
async fn no_secret_is_logged() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let (url, mut got) = address(&["500 No"]).await;
    let events = Notifier::default();
    let settings = begin(
        &events,
        told(hook(&url, &["escalated"])),
        Path::new("/none"),
    );
    for id in ["aaaa", "bbbb"] {
        tell(&events, "approval.escalated", id);
    }
    // The fourth attempt is the first of the second message: the first message has been given up by then.
    for _ in 0..4 {
        got.recv().await.unwrap();
    }
    settings.lock().webhook = Some(Webhook {
        secret: "${secret:missing}".to_owned(),
        ..hook(&url, &["escalated"])
    });
    tell(&events, "approval.escalated", "cccc");
    while !log.text().contains("Cannot use the webhook.") {
        tokio::task::yield_now().await;
    }
    let text = log.text();
    assert!(
        text.contains("Cannot deliver a message to the webhook."),
        "{text}"
    );
    assert!(text.contains("127.0.0.1") && text.contains("500"), "{text}");
    assert!(text.contains("approvals.webhook.secret"), "{text}");
    assert!(!text.contains(SECRET), "{text}");
}

#[tokio::test]
#[cfg(not(target_os = "macos"))]
async fn desktop_program_gets_exact_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("notify-send");
    // The script renames its complete output, so that the test never reads a partial file.
    let script = "#!/bin/sh\nfor each in \"$@\"; do printf '%s\\0' \"$each\"; done > \"$0.part\"\nexec /bin/mv \"$0.part\" \"$0.got\"\n";
    let text = folder.path().join("script");
    std::fs::write(&text, script).unwrap();
    // Another process copies it: a program that this process has open for writing cannot be started, and a
    // child that another test has just forked would have it open, too.
    let copy = "cp \"$1\" \"$2\" && chmod 755 \"$2\"";
    let mut copying = std::process::Command::new("/bin/sh");
    copying.args(["-c", copy, "sh"]).arg(&text).arg(&program);
    assert!(copying.status().unwrap().success());
    let events = Notifier::default();
    let auto = Approvals {
        webhook: None,
        ..Approvals::default()
    };
    begin(&events, auto, folder.path());
    tell(&events, "approval.created", "aaaa");
    tell(&events, "approval.escalated", "bbbb");
    let got = folder.path().join("notify-send.got");
    let text = tokio::time::timeout(Duration::from_secs(20), async {
        loop {
            if let Ok(text) = std::fs::read_to_string(&got) {
                return text;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    let text = text.await.unwrap();
    let arguments: Vec<_> = text.trim_end_matches('\0').split('\0').collect();
    assert_eq!(
        arguments,
        [
            "--app-name=Switchboard",
            "--urgency=critical",
            "--",
            "Switchboard is waiting for you",
            "files: Delete &lt;all&gt;\nhttp://0123.localhost:7777/#approvals/bbbb",
        ]
    );
}
