//! Features that cannot exist in a pair, because one side lacks the means, and the reasons.

use crate::revision::{
    Revision::{Jun2025, Mar2025, Nov2025},
    Side, Way,
};

/// Features that cannot exist in some pairs.
struct Exception {
    features: &'static [&'static str],
    applies: fn(client: Side, server: Side) -> bool,
    reason: &'static str,
}

/// The reason why a feature cannot exist in this pair, if there is one.
pub(crate) fn cannot(feature: &str, client: Side, server: Side) -> Option<&'static str> {
    let found = EXCEPTIONS.iter().find(|exception| {
        exception.features.contains(&feature) && (exception.applies)(client, server)
    });
    found.map(|exception| exception.reason)
}

const EXCEPTIONS: &[Exception] = &[
    Exception {
        features: &["ping"],
        applies: |client, _| client.revision.is_modern(),
        reason: "2026-07-28 has no ping",
    },
    Exception {
        features: &["audio"],
        applies: |client, server| client.revision.min(server.revision) < Mar2025,
        reason: "2024-11-05 has no audio",
    },
    Exception {
        features: &[
            "resource link",
            "structured content",
            "structured content of any type",
        ],
        applies: |client, server| client.revision.min(server.revision) < Jun2025,
        reason: "2024-11-05 and 2025-03-26 have neither resource links nor structured content",
    },
    Exception {
        features: &["elicitation by form", "several questions, several rounds"],
        applies: |client, server| client.revision.min(server.revision) < Jun2025,
        reason: "2024-11-05 and 2025-03-26 have no elicitation",
    },
    Exception {
        features: &["elicitation by URL", "elicitation before a call"],
        applies: |client, server| client.revision.min(server.revision) < Nov2025,
        reason: "only 2025-11-25 and 2026-07-28 have elicitation by URL",
    },
    Exception {
        features: &["tasks"],
        applies: |_, server| server.revision < Nov2025,
        reason: "servers have tasks since 2025-11-25",
    },
    Exception {
        features: &["sessions", "resumption"],
        applies: |client, _| client.revision.is_modern(),
        reason: "2026-07-28 has neither sessions nor streams that can be resumed",
    },
    Exception {
        features: &[
            "refusal of removed methods",
            "refusal of headers that contradict",
            "cache hints",
        ],
        applies: |client, _| !client.revision.is_modern(),
        reason: "belongs to clients of 2026-07-28",
    },
    Exception {
        features: &[
            "sessions",
            "resumption",
            "event ids and priming",
            "refusal of headers that contradict",
        ],
        applies: |client, _| client.way != Way::Http,
        reason: "belongs to Streamable HTTP",
    },
];
