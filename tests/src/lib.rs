//! Compiles the examples of the README.

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
