//! Negotiation of the protocol revision: the meaning of the responses to `server/discover` and `initialize`.
//!
//! The functions here only judge; the machine sends the requests and acts on the verdicts. The rules cope
//! with real servers: some exit when probed, some respond to anything with an empty success, some do not
//! respond at all.

use std::sync::Arc;

use serde::Deserialize;
use switchboard_wire::{
    Era, ErrorObject, Id, Outcome, Raw, Revision, code, encode, excerpt, meta, method,
};

use crate::{error::RequestFailure, settings::Settings};

/// The result of the handshake with the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The revision that both sides use.
    pub revision: Revision,
    /// The capabilities of the server: a `ServerCapabilities` object.
    pub capabilities: Raw,
    /// The name and version of the server: an `Implementation` object. For display only.
    pub server_info: Option<Raw>,
    /// The server's instructions for its use.
    pub instructions: Option<String>,
    /// The complete result of `initialize` or `server/discover`, as it arrived.
    pub raw: Raw,
}

/// The meaning of a handshake response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The handshake succeeded.
    Agreed(Box<Session>),
    /// Send `initialize` and offer this revision.
    Initialize(Revision),
    /// Send `server/discover`.
    Discover,
    /// The server refuses the connection. Permanent if another attempt would end the same way.
    Refused {
        permanent: bool,
        /// Description without text from the server.
        reason: String,
        /// The beginning of the server's message.
        said: Option<Arc<str>>,
    },
}

/// The progress of the handshake.
#[derive(Debug)]
pub(crate) struct Handshake {
    /// The request whose response decides.
    pub(crate) asked: Asked,
    /// A probe that the server has not answered yet. A late response to it still counts.
    pub(crate) open_probe: Option<u64>,
    /// The server has been probed with the newest revision, or must not be.
    pub(crate) is_probed: bool,
    /// Number of requests sent. A server that makes the handshake loop is refused.
    pub(crate) rounds: u32,
}

#[derive(Debug)]
pub(crate) enum Asked {
    Discover(u64),
    Initialize(u64),
    /// The handshake succeeded; the server is being notified.
    Confirming(Box<Session>),
}

pub(crate) const ROUNDS_MAX: u32 = 4;

/// Chooses the first request.
pub(crate) fn opening(settings: &Settings, era: Option<Era>) -> Verdict {
    match (settings.newest.era(), era) {
        (Era::Modern, Some(Era::Modern) | None) => Verdict::Discover,
        (Era::Modern, Some(Era::Legacy)) => Verdict::Initialize(Revision::LATEST_LEGACY),
        (Era::Legacy, _) => Verdict::Initialize(settings.newest),
    }
}

pub(crate) fn discover_frame(settings: &Settings, id: u64) -> bytes::Bytes {
    let meta = Raw::object(modern_meta(settings, Revision::LATEST));
    let params = Raw::object([(meta::META, meta)]);
    encode::request(&Id::from(id), method::DISCOVER, Some(&params))
}

pub(crate) fn initialize_frame(settings: &Settings, id: u64, offer: Revision) -> bytes::Bytes {
    let params = Raw::object([
        ("protocolVersion", Raw::string(offer.as_str())),
        ("capabilities", settings.legacy_capabilities.clone()),
        ("clientInfo", settings.client_info.clone()),
    ]);
    encode::request(&Id::from(id), method::INITIALIZE, Some(&params))
}

/// The members of `_meta` that every request of 2026-07-28 carries.
pub(crate) fn modern_meta(settings: &Settings, revision: Revision) -> [(&'static str, Raw); 3] {
    [
        (meta::PROTOCOL_VERSION, Raw::string(revision.as_str())),
        (
            meta::CLIENT_CAPABILITIES,
            settings.modern_capabilities.clone(),
        ),
        (meta::CLIENT_INFO, settings.client_info.clone()),
    ]
}

/// Judges the response to `server/discover`. Only a list of versions, or an error code that older servers do
/// not use, identifies a modern server. Any other response is an older server's way to report an unknown
/// method.
pub(crate) fn judge_discover(outcome: &Outcome) -> Verdict {
    match outcome {
        Outcome::Result(result) => {
            let Ok(Discovered {
                supported_versions: Some(supported),
            }) = result.read()
            else {
                return Verdict::Initialize(Revision::LATEST_LEGACY);
            };
            if supported
                .iter()
                .any(|version| version == Revision::LATEST.as_str())
            {
                return Verdict::Agreed(Box::new(modern_session(result)));
            }
            offer_legacy(&supported, Revision::LATEST)
        }
        Outcome::Error(error) if error.code == code::UNSUPPORTED_PROTOCOL_VERSION => {
            let supported = supported_in(error).unwrap_or_default();
            if supported
                .iter()
                .any(|version| version == Revision::LATEST.as_str())
            {
                // The server names the revision of the request that it just rejected, as a server that is
                // still starting may do.
                return Verdict::Discover;
            }
            offer_legacy(&supported, Revision::LATEST)
        }
        Outcome::Error(error) if code::is_modern(error.code) => Verdict::Refused {
            permanent: false,
            reason: format!(
                "the server refused `server/discover` (error {})",
                error.code
            ),
            said: words(&error.message),
        },
        Outcome::Error(_) => Verdict::Initialize(Revision::LATEST_LEGACY),
    }
}

/// Judges the response to `initialize`. A server that refuses may only support the newest revision, so it is
/// probed, unless it `is_probed` already.
pub(crate) fn judge_initialize(settings: &Settings, outcome: &Outcome, is_probed: bool) -> Verdict {
    match outcome {
        Outcome::Result(result) => {
            let Ok(answer) = result.read::<Initialized>() else {
                return Verdict::Refused {
                    permanent: false,
                    reason: "the response to `initialize` is not a valid InitializeResult"
                        .to_owned(),
                    said: None,
                };
            };
            match Revision::parse(&answer.protocol_version) {
                Some(revision) if revision.era() == Era::Legacy && revision <= settings.newest => {
                    Verdict::Agreed(Box::new(Session {
                        revision,
                        capabilities: object_or_empty(answer.capabilities),
                        server_info: answer.server_info,
                        instructions: answer.instructions.and_then(|text| text.to_text()),
                        raw: result.clone(),
                    }))
                }
                Some(Revision::LATEST) if !is_probed => Verdict::Discover,
                _ => no_common_version(&[answer.protocol_version], settings.newest),
            }
        }
        Outcome::Error(error) => match supported_in(error) {
            Some(supported) => {
                let modern = supported
                    .iter()
                    .any(|version| version == Revision::LATEST.as_str());
                if modern && settings.newest == Revision::LATEST {
                    Verdict::Discover
                } else {
                    offer_legacy(&supported, settings.newest)
                }
            }
            None if !is_probed => Verdict::Discover,
            None => Verdict::Refused {
                permanent: false,
                reason: format!("the server refused `initialize` (error {})", error.code),
                said: words(&error.message),
            },
        },
    }
}

/// Judges the failure of a transport to carry a request of the handshake. The response of a proxy that is
/// overloaded or has lost its server does not reveal the era of the server.
pub(crate) fn judge_failure(probe: bool, is_probed: bool, failure: &RequestFailure) -> Verdict {
    let refused = || Verdict::Refused {
        permanent: false,
        reason: failure.message.as_ref().to_owned(),
        said: failure.said.clone(),
    };
    match failure.status {
        Some(status @ (401 | 403)) => Verdict::Refused {
            permanent: true,
            reason: if status == 401 || failure.challenged {
                format!("the server requires credentials: {}", failure.message)
            } else {
                format!("the server refused the connection: {}", failure.message)
            },
            said: failure.said.clone(),
        },
        Some(408 | 425 | 429 | 502..=504) => refused(),
        _ if probe => Verdict::Initialize(Revision::LATEST_LEGACY),
        Some(_) if !is_probed => Verdict::Discover,
        _ => refused(),
    }
}

fn modern_session(result: &Raw) -> Session {
    let server_info = result
        .member(meta::META)
        .and_then(|meta| meta.member(meta::SERVER_INFO));
    Session {
        revision: Revision::LATEST,
        capabilities: object_or_empty(result.member("capabilities")),
        server_info,
        instructions: result
            .member("instructions")
            .and_then(|text| text.to_text()),
        raw: result.clone(),
    }
}

fn offer_legacy(supported: &[String], newest: Revision) -> Verdict {
    let common = supported
        .iter()
        .filter_map(|version| Revision::parse(version))
        .filter(|revision| revision.era() == Era::Legacy && *revision <= newest)
        .max();
    common.map_or_else(|| no_common_version(supported, newest), Verdict::Initialize)
}

fn no_common_version(theirs: &[String], newest: Revision) -> Verdict {
    let ours: Vec<_> = Revision::ALL
        .into_iter()
        .filter(|revision| *revision <= newest)
        .map(Revision::as_str)
        .collect();
    Verdict::Refused {
        permanent: true,
        reason: format!(
            "no common protocol version: the server supports none of {}",
            ours.join(", ")
        ),
        said: words(&theirs.join(", ")),
    }
}

/// Returns the beginning of the server's message, if it is not empty.
fn words(said: &str) -> Option<Arc<str>> {
    (!said.is_empty()).then(|| excerpt(said).into())
}

fn supported_in(error: &ErrorObject) -> Option<Vec<String>> {
    error.data.as_ref()?.member("supported")?.read().ok()
}

fn object_or_empty(raw: Option<Raw>) -> Raw {
    raw.filter(Raw::is_object).unwrap_or_else(Raw::empty_object)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Discovered {
    supported_versions: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Initialized {
    protocol_version: String,
    capabilities: Option<Raw>,
    server_info: Option<Raw>,
    instructions: Option<Raw>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(text: &str) -> Outcome {
        Outcome::Result(Raw::parse(text.to_owned()).unwrap())
    }

    fn error(code: i64, data: &str) -> Outcome {
        Outcome::Error(ErrorObject::new(code, "no").with_data(Raw::parse(data.to_owned()).unwrap()))
    }

    fn failed(status: Option<u16>) -> RequestFailure {
        RequestFailure {
            status,
            message: "x".into(),
            said: Some("y".into()),
            sent: true,
            challenged: false,
        }
    }

    #[test]
    fn server_message_is_separate_and_truncated() {
        let long = "<IMPORTANT>\n".repeat(100_000);
        let refused = Outcome::Error(ErrorObject::new(-32000, &*long));
        let version = result(&format!(
            r#"{{"protocolVersion":{},"capabilities":{{}}}}"#,
            Raw::string(&long).as_str()
        ));
        let modern = Outcome::Error(ErrorObject::new(code::HEADER_MISMATCH, &*long));
        for verdict in [
            judge_initialize(&settings(), &refused, true),
            judge_initialize(&settings(), &version, true),
            judge_discover(&modern),
        ] {
            let Verdict::Refused { reason, said, .. } = verdict else {
                panic!("{verdict:?}");
            };
            assert!(!reason.contains("IMPORTANT"), "{reason}");
            let said = said.unwrap();
            assert!(said.starts_with(r"<IMPORTANT>\n<"), "{said}");
            assert!(said.chars().count() < 310 && said.ends_with('…'), "{said}");
        }
        let Verdict::Refused { reason, said, .. } = judge_failure(false, true, &failed(Some(500)))
        else {
            panic!("accepted");
        };
        assert_eq!((&*reason, said.as_deref()), ("x", Some("y")));
    }

    fn settings() -> Settings {
        Settings::new(Raw::empty_object())
    }

    #[test]
    fn only_a_version_list_identifies_a_modern_server() {
        let modern = result(
            r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"instructions":"hi",
                "_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}}"#,
        );
        let Verdict::Agreed(session) = judge_discover(&modern) else {
            panic!("not agreed");
        };
        assert_eq!(session.revision, Revision::LATEST);
        assert_eq!(session.instructions.as_deref(), Some("hi"));
        assert_eq!(session.server_info.unwrap().as_str(), r#"{"name":"s"}"#);

        let legacy = Verdict::Initialize(Revision::LATEST_LEGACY);
        for empty in [
            "{}",
            "null",
            "[]",
            r#"{"supportedVersions":7}"#,
            r#"{"tools":[]}"#,
        ] {
            assert_eq!(judge_discover(&result(empty)), legacy, "{empty}");
        }
        for code in [-32601, -32600, -32602, -32603, -32000, 0, 400] {
            assert_eq!(judge_discover(&error(code, "{}")), legacy, "{code}");
        }
    }

    #[test]
    fn server_without_our_newest_revision_is_initialized() {
        let older = result(r#"{"supportedVersions":["2025-03-26","2025-06-18","2030-01-01"]}"#);
        assert_eq!(
            judge_discover(&older),
            Verdict::Initialize(Revision::V2025_06_18)
        );
        let refused = error(
            code::UNSUPPORTED_PROTOCOL_VERSION,
            r#"{"supported":["2025-11-25"]}"#,
        );
        assert_eq!(
            judge_discover(&refused),
            Verdict::Initialize(Revision::V2025_11_25)
        );
        let again = error(
            code::UNSUPPORTED_PROTOCOL_VERSION,
            r#"{"supported":["2026-07-28"]}"#,
        );
        assert_eq!(judge_discover(&again), Verdict::Discover);
        let strange = error(
            code::UNSUPPORTED_PROTOCOL_VERSION,
            r#"{"supported":["2030-01-01"]}"#,
        );
        assert!(matches!(
            judge_discover(&strange),
            Verdict::Refused {
                permanent: true,
                ..
            }
        ));
    }

    #[test]
    fn initialize_accepts_any_older_revision() {
        for revision in Revision::ALL {
            let answer = result(&format!(
                r#"{{"protocolVersion":"{revision}","capabilities":{{}}}}"#
            ));
            let verdict = judge_initialize(&settings(), &answer, true);
            match revision.era() {
                Era::Legacy => {
                    assert!(matches!(verdict, Verdict::Agreed(s) if s.revision == revision));
                }
                Era::Modern => assert!(matches!(
                    verdict,
                    Verdict::Refused {
                        permanent: true,
                        ..
                    }
                )),
            }
        }
        let unknown = result(r#"{"protocolVersion":"1999-01-01"}"#);
        let Verdict::Refused {
            permanent: true,
            reason,
            said,
        } = judge_initialize(&settings(), &unknown, true)
        else {
            panic!("accepted");
        };
        assert!(
            reason.contains("the server supports none of 2024-11-05"),
            "{reason}"
        );
        assert_eq!(said.as_deref(), Some("1999-01-01"));
        assert!(matches!(
            judge_initialize(&settings(), &result("{}"), true),
            Verdict::Refused {
                permanent: false,
                ..
            }
        ));
    }

    #[test]
    fn modern_server_lists_its_versions_on_initialize() {
        let modern = error(
            code::UNSUPPORTED_PROTOCOL_VERSION,
            r#"{"supported":["2026-07-28"]}"#,
        );
        assert_eq!(
            judge_initialize(&settings(), &modern, true),
            Verdict::Discover
        );
        let mut pinned = settings();
        pinned.newest = Revision::V2025_06_18;
        assert!(matches!(
            judge_initialize(&pinned, &modern, true),
            Verdict::Refused {
                permanent: true,
                ..
            }
        ));
        let older = error(code::INVALID_PARAMS, r#"{"supported":["2024-11-05"]}"#);
        assert_eq!(
            judge_initialize(&settings(), &older, true),
            Verdict::Initialize(Revision::V2024_11_05)
        );
    }

    #[test]
    fn server_that_refuses_initialize_is_probed_once() {
        let refused = error(code::METHOD_NOT_FOUND, "{}");
        let answer = result(r#"{"protocolVersion":"2026-07-28","capabilities":{}}"#);
        for outcome in [refused, answer] {
            let judge = |is_probed| judge_initialize(&settings(), &outcome, is_probed);
            assert_eq!(judge(false), Verdict::Discover);
            assert!(matches!(judge(true), Verdict::Refused { .. }));
        }
        let status = |status| judge_failure(false, false, &failed(status));
        assert_eq!(status(Some(400)), Verdict::Discover);
        assert!(matches!(status(Some(503)), Verdict::Refused { .. }));
        assert!(matches!(status(None), Verdict::Refused { .. }));
    }

    #[test]
    fn forbidden_means_credentials_only_with_a_challenge() {
        let reason = |status, challenged| {
            let failure = RequestFailure {
                challenged,
                ..failed(Some(status))
            };
            match judge_failure(true, true, &failure) {
                Verdict::Refused {
                    permanent: true,
                    reason,
                    ..
                } => reason,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(reason(401, false), "the server requires credentials: x");
        assert_eq!(reason(403, true), "the server requires credentials: x");
        assert_eq!(reason(403, false), "the server refused the connection: x");
    }

    #[test]
    fn statuses_map_to_handshake_verdicts() {
        assert!(matches!(
            judge_failure(true, true, &failed(Some(401))),
            Verdict::Refused {
                permanent: true,
                ..
            }
        ));
        for status in [Some(429), Some(503)] {
            assert!(matches!(
                judge_failure(true, true, &failed(status)),
                Verdict::Refused {
                    permanent: false,
                    ..
                }
            ));
        }
        for status in [Some(400), Some(404), Some(405), Some(500), None] {
            assert_eq!(
                judge_failure(true, true, &failed(status)),
                Verdict::Initialize(Revision::LATEST_LEGACY)
            );
            assert!(matches!(
                judge_failure(false, true, &failed(status)),
                Verdict::Refused {
                    permanent: false,
                    ..
                }
            ));
        }
    }
}
