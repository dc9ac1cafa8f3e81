//! The body of an error status, if it is JSON-RPC.

use bytes::Bytes;
use switchboard_wire::{Frame, Id, Message, Outcome, encode};

/// A JSON-RPC error, as a frame that answers the request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ErrorReply {
    /// The server rejected this request.
    Request(Bytes),
    /// The server seems to have rejected the session of the request.
    Session(Bytes),
}

/// Reads a refusal; `None` if it is not JSON-RPC, or about another request.
pub(super) fn refusal(body: &Bytes, id: u64) -> Option<ErrorReply> {
    let Ok(Frame::Single(Message::Response(response))) = Frame::parse(body.clone()) else {
        return None;
    };
    let Outcome::Error(error) = &response.outcome else {
        return None;
    };
    let id = Id::from(id);
    match &response.id {
        Some(own) if *own == id => Some(ErrorReply::Request(body.clone())),
        Some(_) => None,
        None => {
            let frame = encode::error(Some(&id), error);
            // Some servers respond to a lost session with 400 instead of 404, and say so in the
            // message.
            let text = error.message.to_ascii_lowercase();
            if text.contains("session") || text.contains("not initialized") {
                Some(ErrorReply::Session(frame))
            } else {
                Some(ErrorReply::Request(frame))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &'static str) -> Option<ErrorReply> {
        refusal(&Bytes::from_static(body.as_bytes()), 7)
    }

    #[test]
    fn json_rpc_refusal_is_a_response() {
        let own = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no","x":1.0}}"#;
        assert_eq!(read(own), Some(ErrorReply::Request(own.into())));
        for body in [
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"no","x":1.0}}"#,
            r#"{"jsonrpc":"2.0","error":{"code":-32022,"message":"no","x":1.0}}"#,
        ] {
            let expected =
                r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32022,"message":"no","x":1.0}}"#;
            assert_eq!(read(body), Some(ErrorReply::Request(expected.into())));
        }
        for body in [
            "",
            "<html>",
            r#"{"error":"no"}"#,
            r#"{"jsonrpc":"2.0","id":8,"error":{"code":1,"message":"no"}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#,
        ] {
            assert_eq!(read(body), None, "{body}");
        }
    }

    #[test]
    fn refusal_of_the_session_is_recognised() {
        for body in [
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}"#,
        ] {
            assert!(matches!(read(body), Some(ErrorReply::Session(_))), "{body}");
        }
        let own = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"no such session"}}"#;
        assert_eq!(read(own), Some(ErrorReply::Request(own.into())));
    }
}
