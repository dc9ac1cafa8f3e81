//! The web page of the gateway: its files, and how they are to be served.

/// A file as it is served.
#[derive(Debug)]
pub struct File {
    /// Where: the path of its address.
    pub path: &'static str,
    /// What `Content-Type` says.
    pub content_type: &'static str,
    /// What is in it.
    pub bytes: &'static [u8],
    /// What `ETag` says, in its quotes.
    pub etag: &'static str,
}

/// What goes with every file.
pub const HEADERS: &[(&str, &str)] = &[(
    "content-security-policy",
    "default-src 'none'; frame-ancestors 'none'",
)];

const FILES: &[File] = &[File {
    path: "/",
    content_type: "text/html; charset=utf-8",
    bytes: include_bytes!("../files/index.html"),
    etag: "\"1\"",
}];

/// The file at this path of an address, which has to be spelled as it is here.
pub fn file(path: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.path == path)
}
