//! The embedders from outside: against the published model where it is there, and against files that lie.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod published;
