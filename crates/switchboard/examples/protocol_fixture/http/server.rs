//! The socket, and requests read whole.

use std::{convert::Infallible, future::Future, io, net::Ipv4Addr};

use http_body_util::{BodyExt, Limited};
use hyper::{
    HeaderMap, Method, Response, StatusCode,
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{io::AsyncWriteExt, net::TcpListener};

use super::reply::{Reply, status};

/// The longest body that is read.
const BODY_MAX: usize = 64 << 20;

pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: String,
    headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let value = self.headers.get(name)?.to_str().ok()?;
        Some(value.trim())
    }

    /// Whether it comes from this machine, and from no page of another.
    fn is_local(&self) -> bool {
        let local = |authority: &str| {
            let host = authority
                .rsplit_once(':')
                .map_or(authority, |(host, port)| {
                    if port.bytes().all(|byte| byte.is_ascii_digit()) {
                        host
                    } else {
                        authority
                    }
                });
            matches!(host, "localhost" | "127.0.0.1" | "[::1]")
        };
        let host = self.header("host").is_some_and(local);
        let origin = self.header("origin").is_none_or(|origin| {
            let authority = origin.split_once("://").map(|(_, rest)| rest);
            authority.is_some_and(local)
        });
        host && origin
    }
}

/// Says where it listens, and answers whoever comes.
pub(crate) async fn listen<F, A>(port: u16, path: &str, answer: F) -> io::Result<()>
where
    F: Fn(Request) -> A + Clone + Send + 'static,
    A: Future<Output = Response<Reply>> + Send,
{
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let line = format!("listening on http://{}{path}\n", listener.local_addr()?);
    let mut out = tokio::io::stdout();
    out.write_all(line.as_bytes()).await?;
    out.flush().await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let answer = answer.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let answer = answer.clone();
                async move { Ok::<_, Infallible>(whole(request, answer).await) }
            });
            // A client that leaves in the middle is no business of ours.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn whole<F, A>(request: hyper::Request<Incoming>, answer: F) -> Response<Reply>
where
    F: Fn(Request) -> A,
    A: Future<Output = Response<Reply>>,
{
    let (head, body) = request.into_parts();
    let Ok(body) = Limited::new(body, BODY_MAX).collect().await else {
        return status(StatusCode::PAYLOAD_TOO_LARGE);
    };
    let request = Request {
        method: head.method,
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: head.headers,
        body: body.to_bytes(),
    };
    if !request.is_local() {
        return status(StatusCode::FORBIDDEN);
    }
    answer(request).await
}
