//! `_meta`: the names in it that the protocol gives a meaning, and stamping them on parameters.

use crate::{Raw, RawError};

/// The member of parameters and results that carries the names below.
pub const META: &str = "_meta";
/// The revision of a request (2026-07-28).
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// What the client can do, for this request (2026-07-28).
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Who the client is (2026-07-28).
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// Who the server is, on a result (2026-07-28).
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// From which level on to send log messages for this request (2026-07-28).
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Which listen stream a notification belongs to (2026-07-28).
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// Under which name to report progress of this request.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// W3C trace context: where this request belongs in a trace.
pub const TRACEPARENT: &str = "traceparent";

/// These parameters with these members of `_meta` set. Everything else in the parameters, and in a
/// `_meta` already there, stays byte for byte.
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
    fn a_meta_that_is_no_object_gives_way() {
        let params = Raw::parse(r#"{"_meta":null,"a":1}"#).unwrap();
        let stamped = stamp(Some(&params), &[("b", Raw::number(2))]).unwrap();
        assert_eq!(stamped.as_str(), r#"{"_meta":{"b":2},"a":1}"#);
    }

    #[test]
    fn parameters_that_are_no_object_are_refused() {
        let params = Raw::parse("[1]").unwrap();
        assert!(matches!(
            stamp(Some(&params), &[]),
            Err(RawError::NotAnObject)
        ));
    }
}
