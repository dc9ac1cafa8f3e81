//! Compiles the examples of the book.

#[cfg(doctest)]
#[doc = include_str!("../../docs/client-library.md")]
struct ClientLibrary;
