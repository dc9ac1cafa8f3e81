//! Another program on the port of a gateway that has ended, while a page of the console is still open.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    time::Duration,
};

use serde_json::json;
use switchboard_test_support::patiently;

use crate::{browser::Browser, place::Place};

const PROVE: &str = "POST /api/v1/console/prove ";

/// Answers requests as well as it can, until the page has asked this often for a proof. Returns all requests.
fn answer_until_asked(listener: &TcpListener, times: usize) -> Vec<String> {
    listener.set_nonblocking(true).unwrap();
    let mut sent: Vec<String> = Vec::new();
    let asked = patiently(|| {
        while let Ok((stream, _)) = listener.accept() {
            sent.extend(answer(stream));
        }
        sent.iter().filter(|one| one.starts_with(PROVE)).count() >= times
    });
    assert!(asked.is_some(), "{sent:#?}");
    sent
}

/// Reads one request and answers it; `None` for a connection that sends nothing.
fn answer(stream: TcpStream) -> Option<String> {
    stream.set_nonblocking(false).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(3)))
        .unwrap();
    let mut reader = BufReader::new(stream);
    let mut sent = String::new();
    while !sent.ends_with("\r\n\r\n") {
        if !matches!(reader.read_line(&mut sent), Ok(1..)) {
            return None;
        }
    }
    let length = sent.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        let is_length = name.eq_ignore_ascii_case("content-length");
        is_length.then(|| value.parse().unwrap())
    });
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).unwrap();
    sent.push_str(&String::from_utf8(body).unwrap());
    let proof = json!({ "proof": "0".repeat(64) }).to_string();
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{proof}",
        proof.len()
    );
    // The page may have closed the connection.
    let _ = reader.get_mut().write_all(answer.as_bytes());
    Some(sent)
}

#[test]
fn session_is_not_sent_to_another_program() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let place = Place::new(&[], &json!({ "tools": [] }), &json!({}));
    place.open(&browser);
    let token = browser.execute(
        "return localStorage.getItem('switchboard.token')",
        &json!([]),
    );
    let (_, secret) = token.as_str().unwrap().split_once('.').unwrap();
    let address = place.address.clone();
    place.after(|_| {
        let listener = TcpListener::bind(&address).unwrap();
        // A page that is opened requests more than events.
        browser.execute("location.hash = 'servers'", &json!([]));
        for one in answer_until_asked(&listener, 2) {
            let lower = one.to_lowercase();
            assert!(!lower.contains("authorization"), "{one}");
            assert!(!one.contains(secret), "{one}");
        }
    });
}
