//! The table of files, put together when the crate is compiled.

use crate::File;

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const PICTURE: &str = "image/svg+xml";

macro_rules! file {
    ($path:expr, $name:literal, $content_type:ident) => {
        File {
            path: $path,
            content_type: $content_type,
            bytes: include_bytes!(concat!("../web/", $name)),
            etag: {
                const TAG: [u8; TAG_BYTES] = tag(include_bytes!(concat!("../web/", $name)));
                text(&TAG)
            },
        }
    };
}

macro_rules! files {
    ($($content_type:ident: $($name:literal),+;)+) => {
        &[
            file!("/", "index.html", HTML),
            $($(file!(concat!("/console/", $name), $name, $content_type),)+)+
        ]
    };
}

pub(crate) const FILES: &[File] = files! {
    STYLE: "base.css", "layout.css", "parts.css", "pages.css", "approvals.css";
    SCRIPT:
        "activity.js",
        "api.js",
        "app.js",
        "approval.js",
        "approvals.js",
        "call.js",
        "chart.js",
        "decide.js",
        "diff.js",
        "dom.js",
        "events.js",
        "form.js",
        "keys.js",
        "marks.js",
        "model-answer.js",
        "notices.js",
        "outcome.js",
        "overview.js",
        "payload.js",
        "question.js",
        "rules.js",
        "server.js",
        "servers.js",
        "session.js",
        "settings.js",
        "store.js",
        "tool-call.js",
        "tool.js",
        "tools.js",
        "trust-request.js",
        "words.js";
    PICTURE: "icon.svg";
};

/// Sixteen digits and two quotes.
const TAG_BYTES: usize = 18;

/// A short name for these bytes (FNV-1a). It tells one build from another, and nobody is kept out by it.
const fn tag(bytes: &[u8]) -> [u8; TAG_BYTES] {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    let mut tag = [b'"'; TAG_BYTES];
    let mut digit = 1;
    while digit < TAG_BYTES - 1 {
        tag[digit] = DIGITS[(hash & 15) as usize];
        hash >>= 4;
        digit += 1;
    }
    tag
}

const fn text(tag: &'static [u8]) -> &'static str {
    match str::from_utf8(tag) {
        Ok(text) => text,
        // Digits and quotes are always text.
        Err(_) => "",
    }
}
