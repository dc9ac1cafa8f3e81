//! The page on this machine that a browser is redirected to at the end of a sign-in.

use std::{fmt::Write as _, io, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc, oneshot},
    task::JoinSet,
    time::timeout,
};
use url::{Host, Url};

/// The longest request.
const REQUEST_BYTES: usize = 16 * 1024;
/// The time limit for a request to arrive.
const ARRIVAL: Duration = Duration::from_secs(10);
/// The time limit for its result.
const RESULT: Duration = Duration::from_mins(1);
/// The most requests at the same time. Browsers open connections in advance.
const CONNECTIONS: usize = 32;

/// The path of the page.
const PATH: &str = "/callback";

/// Listens for the browser, until it is dropped.
#[derive(Debug)]
pub(super) struct Listener {
    /// The address that the browser is redirected to.
    pub(super) redirect_uri: String,
    arrivals: Option<mpsc::Receiver<Arrival>>,
    /// Dropping it ends the task.
    task: JoinSet<()>,
}

/// A browser that was redirected to the page.
#[derive(Debug)]
pub(super) struct Arrival {
    /// The address with its parameters.
    pub(super) url: String,
    /// Shows the result.
    pub(super) page: oneshot::Sender<Page>,
}

/// The content of the page.
#[derive(Debug)]
pub(super) enum Page {
    SignedIn,
    Failed(String),
}

impl Listener {
    /// Listens on a free port, or where this redirect URI leads to. Without a port, it is a free one. If the URI is not an
    /// address of this machine over HTTP, nothing listens, and the user has to copy the address.
    pub(super) async fn bind(redirect_uri: Option<&str>) -> io::Result<Self> {
        let wanted = redirect_uri.map_or_else(|| format!("http://127.0.0.1{PATH}"), str::to_owned);
        let Some((mut url, host)) = local(&wanted) else {
            return Ok(Self {
                redirect_uri: wanted,
                arrivals: None,
                task: JoinSet::new(),
            });
        };
        let listener = TcpListener::bind((&*host, url.port().unwrap_or(0))).await?;
        let redirect_uri = if url.port().is_some() {
            wanted
        } else {
            // Authorization servers accept any port of a loopback address (RFC 8252). It is a URL with a host, so
            // that this does not fail.
            let _ = url.set_port(Some(listener.local_addr()?.port()));
            url.to_string()
        };
        let path = url.path().to_owned();
        let (arrive, arrivals) = mpsc::channel(CONNECTIONS);
        let mut task = JoinSet::new();
        task.spawn(listen(listener, path, arrive));
        Ok(Self {
            redirect_uri,
            arrivals: Some(arrivals),
            task,
        })
    }

    /// Stops listening, so that the port is free.
    pub(super) async fn close(mut self) {
        self.task.shutdown().await;
    }

    /// Waits for a browser.
    pub(super) async fn arrival(&mut self) -> Arrival {
        let arrived = match &mut self.arrivals {
            Some(arrivals) => arrivals.recv().await,
            None => None,
        };
        match arrived {
            Some(arrival) => arrival,
            None => std::future::pending().await,
        }
    }
}

/// A redirect URI that leads to this machine over HTTP, and its host.
fn local(uri: &str) -> Option<(Url, String)> {
    let url = Url::parse(uri).ok().filter(|url| url.scheme() == "http")?;
    let host = match url.host()? {
        Host::Domain(name) if name == "localhost" => name.to_owned(),
        Host::Ipv4(address) if address.is_loopback() => address.to_string(),
        Host::Ipv6(address) if address.is_loopback() => address.to_string(),
        Host::Domain(_) | Host::Ipv4(_) | Host::Ipv6(_) => return None,
    };
    Some((url, host))
}

async fn listen(listener: TcpListener, path: String, arrive: mpsc::Sender<Arrival>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    while let Ok(place) = Arc::clone(&room).acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
            // Too many open files, for example.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let served = serve(stream, path.clone(), arrive.clone());
        // It outlives the listener, to show the result.
        tokio::spawn(async move {
            served.await;
            drop(place);
        });
    }
}

/// Answers one request. Errors concern only the browser.
async fn serve(mut stream: TcpStream, path: String, arrive: mpsc::Sender<Arrival>) {
    let Ok(Some(head)) = timeout(ARRIVAL, read_head(&mut stream)).await else {
        return;
    };
    let answer = match target(&head) {
        Some((method, _)) if !method.eq_ignore_ascii_case("GET") => response(
            "405 Method Not Allowed",
            "Not allowed",
            "Only GET is supported here.",
        ),
        Some((_, target)) if target.split('?').next() == Some(&*path) => {
            let (page, shown) = oneshot::channel();
            let url = target.to_owned();
            if arrive.send(Arrival { url, page }).await.is_err() {
                return;
            }
            match timeout(RESULT, shown).await {
                Ok(Ok(Page::SignedIn)) => {
                    response("200 OK", "Signed in", "You can close this page.")
                }
                Ok(Ok(Page::Failed(reason))) => {
                    response("400 Bad Request", "Not signed in", &reason)
                }
                Ok(Err(_)) | Err(_) => {
                    response("400 Bad Request", "Not signed in", "The sign-in has ended.")
                }
            }
        }
        _ => response(
            "404 Not Found",
            "Not found",
            "There is nothing at this address.",
        ),
    };
    let _ = timeout(ARRIVAL, async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await
    })
    .await;
}

async fn read_head(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut head = Vec::with_capacity(1024);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() >= REQUEST_BYTES || stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    Some(head)
}

/// The method and the target of a request.
fn target(head: &[u8]) -> Option<(&str, &str)> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    Some((words.next()?, words.next()?))
}

fn response(status: &str, title: &str, text: &str) -> String {
    let body = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\
         <style>body{{font:1.1rem/1.5 system-ui,sans-serif;margin:15vh auto;max-width:36rem;padding:0 1rem}}</style>\
         <h1>{title}</h1><p>{}</p></html>\n",
        escape(text)
    );
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\
         Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Makes a text safe to show in a page.
fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '<' | '>' | '&' | '"' | '\'') {
            // Writing to a string cannot fail.
            let _ = write!(safe, "&#{};", u32::from(character));
        } else {
            safe.push(character);
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_machine_are_listened_on() {
        let local =
            |uri| local(uri).map(|(url, host)| format!("{host} {:?} {}", url.port(), url.path()));
        for (uri, expected) in [
            ("http://127.0.0.1:8123/cb", Some("127.0.0.1 Some(8123) /cb")),
            ("http://localhost/", Some("localhost None /")),
            ("http://[::1]:1/x?y", Some("::1 Some(1) /x")),
            ("https://127.0.0.1/cb", None),
            ("http://192.168.0.1/cb", None),
            ("http://example.com/cb", None),
            ("com.example.app:/cb", None),
            ("", None),
        ] {
            assert_eq!(local(uri).as_deref(), expected, "{uri}");
        }
    }

    #[test]
    fn page_shows_text_as_text() {
        let page = response("400 Bad Request", "Not signed in", "<script>&\"'");
        assert!(page.contains("&#60;script&#62;&#38;&#34;&#39;"), "{page}");
    }
}
