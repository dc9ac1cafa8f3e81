//! `_meta`: the keys in it that the protocol defines, and a function to set them on parameters.

use crate::{Raw, RawError};

/// The member of parameters and results that holds the keys below.
pub const META: &str = "_meta";
/// The protocol revision of a request (2026-07-28).
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The capabilities of the client for this request (2026-07-28).
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The name and version of the client (2026-07-28).
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// The name and version of the server, on a result (2026-07-28).
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The lowest level of log messages to send for this request (2026-07-28).
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The listen stream that a notification belongs to (2026-07-28).
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The token under which to report the progress of this request.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// The W3C trace context: the place of this request in a trace.
pub const TRACEPARENT: &str = "traceparent";

/// Returns the parameters with these members set in `_meta`. All other bytes of the parameters, and
/// of an existing `_meta`, stay the same.
///
/// ```
/// use switchboard_wire::{Raw, meta};
///
/// let params = Raw::parse(r#"{"name":"x","_meta":{"a":1.0}}"#)?;
/// let stamped = meta::stamp(Some(&params), &[(meta::PROGRESS_TOKEN, Raw::number(7))])?;
/// assert_eq!(stamped.as_str(), r#"{"name":"x","_meta":{"a":1.0,"progressToken":7}}"#);
/// # Ok::<(), switchboard_wire::RawError>(())
/// ```
pub fn stamp(params: Option<&Raw>, members: &[(&str, Raw)]) -> Result<Raw, RawError> {
    let own = params.and_then(|params| params.member(META));
    let own = own.filter(Raw::is_object);
    let meta = match own {
        None => Raw::object(members.iter().cloned()),
        Some(own) => members
            .iter()
            .try_fold(own, |meta, (name, value)| meta.with_member(name, value))?,
    };
    match params {
        None => Ok(Raw::object([(META, meta)])),
        Some(params) => params.with_member(META, &meta),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meta_that_is_no_object_is_replaced() {
        let params = Raw::parse(r#"{"_meta":null,"a":1}"#).unwrap();
        let stamped = stamp(Some(&params), &[("b", Raw::number(2))]).unwrap();
        assert_eq!(stamped.as_str(), r#"{"_meta":{"b":2},"a":1}"#);
    }

    #[test]
    fn parameters_that_are_no_object_are_rejected() {
        let params = Raw::parse("[1]").unwrap();
        assert!(matches!(
            stamp(Some(&params), &[]),
            Err(RawError::NotAnObject)
        ));
    }
}
