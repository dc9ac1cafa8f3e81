//! Reads the body of a request over HTTP, within limits of length, time and sum.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::{StatusCode, body::Incoming};
use switchboard_base::caller::Principal;
use switchboard_wire::limits;
use tokio::time::timeout;

use super::body::{UNFINISHED, UNFINISHED_OF_TOKENS, Unread, read_counted};

/// The longest time that the body of a request may take to arrive.
pub const BODY_PATIENCE: Duration = Duration::from_secs(30);

/// Reads the body of a request. The error is the status and the message of the response.
pub(crate) async fn read(
    body: Incoming,
    principal: Principal,
) -> Result<Bytes, (StatusCode, String)> {
    let body = Limited::new(body, limits::FRAME_BYTES);
    let body = async {
        match principal {
            Principal::Owner => Ok(body.collect().await.map_err(Unread::of)?.to_bytes()),
            Principal::Token(_) => read_counted(body, &UNFINISHED_OF_TOKENS).await,
            Principal::Anyone => read_counted(body, &UNFINISHED).await,
        }
    };
    let unread = match timeout(BODY_PATIENCE, body).await {
        Ok(Ok(body)) => return Ok(body),
        Ok(Err(unread)) => unread,
        Err(_) => Unread::Late,
    };
    let (status, message) = match unread {
        Unread::TooLong => {
            let message = format!("the body is longer than {} bytes", limits::FRAME_BYTES);
            return Err((StatusCode::PAYLOAD_TOO_LARGE, message));
        }
        Unread::Broken => (StatusCode::BAD_REQUEST, "the body ended too early"),
        Unread::Late => (
            StatusCode::REQUEST_TIMEOUT,
            "the body took too long to arrive",
        ),
        Unread::Crowded => (
            StatusCode::SERVICE_UNAVAILABLE,
            "too many large requests are arriving at once; try again later",
        ),
    };
    Err((status, message.to_owned()))
}
