//! The web page of the gateway: its files, and how they are to be served.
//!
//! The files are written by hand and are served as they are: there is no build step, and nothing is
//! loaded from elsewhere. They hold no data, so that they need no token; all that they show they read
//! from the gateway's REST interface with the token of the person who signed in.

mod table;

/// A file of the console.
#[derive(Debug)]
pub struct File {
    /// Where it is served: `/`, `/console/app.js`.
    pub path: &'static str,
    /// What it is, for the header `Content-Type`.
    pub content_type: &'static str,
    /// What is in it.
    pub bytes: &'static [u8],
    /// Changes with the bytes, for the header `ETag`, in its quotes.
    pub etag: &'static str,
}

/// The file that is served at this path, if there is one.
pub fn file(path: &str) -> Option<&'static File> {
    table::FILES.iter().find(|file| file.path == path)
}

/// All files.
pub fn files() -> &'static [File] {
    table::FILES
}

/// What is sent with every file.
///
/// All that the console shows comes from others, and may be hostile. The first line of defence is that
/// the scripts never make markup of it; these headers are the second: nothing but our own files runs,
/// text cannot become script (`trusted-types`), nothing is sent elsewhere, and no other page can frame
/// this one to steer somebody's clicks.
pub const HEADERS: &[(&str, &str)] = &[
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Frame-Options", "DENY"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    (
        "Permissions-Policy",
        "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    ),
    // A newer gateway brings newer files: a browser asks each time, and is told when nothing changed.
    ("Cache-Control", "no-cache"),
];
