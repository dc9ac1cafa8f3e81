//! The web console of the gateway: its files, and the headers to serve them with.
//!
//! The files are handwritten and served verbatim: there is no build step, and nothing is loaded from
//! elsewhere. They contain no data, so they need no token. Everything that they show comes from the
//! gateway's REST interface, with the token of the signed-in user.

mod table;

/// A file of the console.
#[derive(Debug)]
pub struct File {
    /// URL path of the file: `/`, `/console/app.js`.
    pub path: &'static str,
    /// Value of the header `Content-Type`.
    pub content_type: &'static str,
    /// Content of the file.
    pub bytes: &'static [u8],
    /// Value of the header `ETag`, with its quotes. It changes with the content.
    pub etag: &'static str,
}

/// The file that is served at this path, if any.
pub fn file(path: &str) -> Option<&'static File> {
    table::FILES.iter().find(|file| file.path == path)
}

/// All files.
pub fn files() -> &'static [File] {
    table::FILES
}

/// Headers that are sent with every file.
///
/// Everything that the console shows comes from other parties and may be hostile. The first line of
/// defence is that the scripts never turn it into markup. These headers are the second: only our own
/// files run, text cannot become script (`trusted-types`), nothing is sent elsewhere, and no other page
/// can frame this one for clickjacking.
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
    // A newer gateway has newer files: the browser revalidates each time and gets a 304 if nothing
    // changed.
    ("Cache-Control", "no-cache"),
];
