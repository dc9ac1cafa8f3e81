//! Providers that do not respond, or not as they should.

use std::{
    error::Error as _,
    time::{Duration, Instant},
};

use serde_json::json;
use switchboard_provider::{Kind, Provider, ProviderError, Settings};
use tokio::net::TcpListener;

use super::{
    KEY, ask, hello, provider,
    server::{Reply, Server},
    settings,
};

fn fine() -> Reply {
    Reply::Json(200, json!({"choices": [{"message": {"content": "Hi!"}}]}))
}

/// The error after these replies, and the number of requests.
async fn trouble(replies: impl IntoIterator<Item = Reply>) -> (ProviderError, usize) {
    let server = Server::start(replies).await;
    let error = ask(&provider(Kind::OpenAi, &server), &hello())
        .await
        .unwrap_err();
    (error, server.seen().len())
}

#[tokio::test]
async fn temporary_error_is_retried_once() {
    for status in [429, 503, 529] {
        let server =
            Server::start([Reply::Header(status, "retry-after", "0".to_owned()), fine()]).await;
        let generated = ask(&provider(Kind::OpenAi, &server), &hello()).await;
        assert!(generated.is_ok(), "{status}: {generated:?}");
        let seen = server.seen();
        assert_eq!(seen.len(), 2);
        assert_eq!(seen[0].body, seen[1].body);
        let (error, asked) = trouble([Reply::Header(status, "retry-after", "0".to_owned())]).await;
        let expected = if status == 429 { "busy" } else { "status" };
        assert_eq!((error.kind(), asked), (expected, 2), "{status}: {error}");
    }
}

#[tokio::test]
async fn request_that_may_be_billed_is_not_retried() {
    for status in [408, 500, 502, 504] {
        let replies = [Reply::Header(status, "retry-after", "0".to_owned()), fine()];
        let (error, asked) = trouble(replies).await;
        assert_eq!((error.kind(), asked), ("status", 1), "{status}: {error}");
    }
}

#[tokio::test]
async fn permanent_error_is_not_retried() {
    for (status, kind) in [
        (400, "status"),
        (401, "key"),
        (403, "key"),
        (404, "not_found"),
        (413, "status"),
        (501, "status"),
    ] {
        let body = json!({"error": {"message": format!("bad\nrequest with {KEY}")}});
        let (error, asked) = trouble([Reply::Json(status, body)]).await;
        assert_eq!((error.kind(), asked), (kind, 1), "{status}: {error}");
        assert!(!error.to_string().contains(KEY), "{error}");
        assert!(!format!("{error:?}").contains(KEY), "{error:?}");
        if !matches!(status, 401 | 403) {
            assert!(
                error.to_string().contains(r#"("bad request with (key)")"#),
                "{error}"
            );
        }
    }
    let page = "<html>a page</html>".to_owned();
    let (error, _) = trouble([Reply::Text(400, "text/html", page)]).await;
    assert!(!error.to_string().contains("html"), "{error}");
    let (error, _) = trouble([Reply::Text(
        400,
        "text/plain; charset=utf-8",
        "a reason".to_owned(),
    )])
    .await;
    assert!(error.to_string().contains(r#"("a reason")"#), "{error}");
}

#[tokio::test]
async fn retry_after_is_obeyed_within_the_limit() {
    let server = Server::start([Reply::Header(503, "retry-after", "1".to_owned()), fine()]).await;
    let started = Instant::now();
    ask(&provider(Kind::OpenAi, &server), &hello())
        .await
        .unwrap();
    assert!(started.elapsed() >= Duration::from_secs(1));
    let (error, asked) =
        trouble([Reply::Header(429, "retry-after", "60".to_owned()), fine()]).await;
    assert!(
        error.hint().unwrap().contains("try again after 60 s"),
        "{error:?}"
    );
    assert_eq!(asked, 1);
    // No wait for a second attempt that would not fit into the time limit.
    let server = Server::start([Reply::Header(503, "retry-after", "4".to_owned()), fine()]).await;
    let short = Settings {
        timeout: Duration::from_secs(2),
        ..settings(Kind::OpenAi, &server)
    };
    let error = ask(&Provider::new(short).unwrap(), &hello())
        .await
        .unwrap_err();
    assert_eq!((error.kind(), server.seen().len()), ("status", 1));
}

#[tokio::test]
async fn unreachable_address_is_tried_twice() {
    // A port that was free a moment ago, and on which nothing listens.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://user:pass@{}", listener.local_addr().unwrap());
    drop(listener);
    let settings = Settings {
        base_url: Some(address),
        ..Settings::new(Kind::OpenAi, "m")
    };
    let started = Instant::now();
    let error = ask(&Provider::new(settings).unwrap(), &hello())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), "unreachable");
    // There was a second attempt, after the usual wait.
    assert!(started.elapsed() >= Duration::from_millis(500));
    assert!(error.source().is_some());
    assert!(!format!("{error} {error:?}").contains("pass@"), "{error:?}");
}

#[tokio::test]
async fn sent_request_is_not_repeated() {
    let server = Server::start([Reply::Silence]).await;
    let short = Settings {
        timeout: Duration::from_millis(1_500),
        ..settings(Kind::OpenAi, &server)
    };
    let error = ask(&Provider::new(short).unwrap(), &hello())
        .await
        .unwrap_err();
    assert_eq!((error.kind(), server.seen().len()), ("timed_out", 1));
    assert!(error.to_string().contains("within 1.5 s"), "{error}");
    for reply in [Reply::HangUp, Reply::Half] {
        let (error, asked) = trouble([reply, fine()]).await;
        assert_eq!((error.kind(), asked), ("interrupted", 1));
    }
}

#[tokio::test]
async fn redirect_is_not_followed() {
    let elsewhere = Server::start([fine()]).await;
    for status in [301, 302, 307, 308] {
        let to = format!("{}/v1/chat/completions", elsewhere.address());
        let (error, asked) = trouble([Reply::Header(status, "location", to)]).await;
        assert_eq!((error.kind(), asked), ("redirect", 1));
    }
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn answer_is_bounded_in_bytes() {
    let (error, asked) = trouble([Reply::Endless(64 * 1024 * 1024)]).await;
    assert_eq!((error.kind(), asked), ("too_large", 1), "{error}");
    let (error, asked) = trouble([Reply::Endless(1024 * 1024)]).await;
    assert_eq!((error.kind(), asked), ("answer", 1), "{error}");
}

#[tokio::test]
async fn key_is_never_passed_on() {
    let echo = json!({"choices": [{"message": {"content": format!("You sent {KEY}.")}}]});
    let (error, _) = trouble([Reply::Json(200, echo)]).await;
    assert_eq!(error.kind(), "key_in_answer");
    let echo = json!({"choices": [{"message": {"refusal": format!("No, {KEY}")}}]});
    let (refused, _) = trouble([Reply::Json(200, echo)]).await;
    assert_eq!(refused.kind(), "refused");
    let echo = json!({"error": {"message": format!("Not for {KEY}")}});
    let (odd, _) = trouble([Reply::Json(200, echo)]).await;
    assert_eq!(odd.kind(), "answer");
    for error in [error, refused, odd] {
        assert!(!format!("{error} {error:?}").contains(KEY), "{error:?}");
    }
    let server = Server::start([fine()]).await;
    let provider = provider(Kind::OpenAi, &server);
    let shown = format!("{provider:?} {:?}", settings(Kind::OpenAi, &server));
    assert!(!shown.contains(KEY), "{shown}");
    let unsendable = Settings {
        api_key: Some(format!("{KEY}\n")),
        ..Settings::new(Kind::OpenAi, "m")
    };
    let error = Provider::new(unsendable).unwrap_err();
    assert!(!format!("{error} {error:?}").contains(KEY), "{error:?}");
}
