//! Encoding of messages. Payloads are copied byte for byte.

use bytes::Bytes;

use crate::{ErrorObject, Id, Raw, raw::write_string};

/// Encodes a request.
pub fn request(id: &Id, method: &str, params: Option<&Raw>) -> Bytes {
    let mut out = open(method.len() + params.map_or(0, |params| params.as_bytes().len()));
    push_member(&mut out, "id", id.raw());
    push_method(&mut out, method, params);
    close(out)
}

/// Encodes a notification.
pub fn notification(method: &str, params: Option<&Raw>) -> Bytes {
    let mut out = open(method.len() + params.map_or(0, |params| params.as_bytes().len()));
    push_method(&mut out, method, params);
    close(out)
}

/// Encodes a response that carries a result.
pub fn result(id: &Id, result: &Raw) -> Bytes {
    let mut out = open(result.as_bytes().len());
    push_member(&mut out, "id", id.raw());
    push_member(&mut out, "result", result);
    close(out)
}

/// Encodes a response that carries an error. Without an id, which is the case if the request could
/// not be read, the response has `"id": null`.
pub fn error(id: Option<&Id>, error: &ErrorObject) -> Bytes {
    let mut out = open(error.raw().as_bytes().len());
    match id {
        Some(id) => push_member(&mut out, "id", id.raw()),
        None => out.extend_from_slice(b",\"id\":null"),
    }
    push_member(&mut out, "error", error.raw());
    close(out)
}

fn open(payload: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(payload + 96);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
    out
}

fn push_method(out: &mut Vec<u8>, method: &str, params: Option<&Raw>) {
    out.extend_from_slice(b",\"method\":");
    write_string(out, method);
    if let Some(params) = params {
        push_member(out, "params", params);
    }
}

fn push_member(out: &mut Vec<u8>, name: &str, value: &Raw) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    out.extend_from_slice(value.as_bytes());
}

fn close(mut out: Vec<u8>) -> Bytes {
    out.push(b'}');
    out.into()
}
