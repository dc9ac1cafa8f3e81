//! Every revision of the protocol on either side of the gateway: the real program, a server that speaks each
//! revision (`fixtures/protocol_fixture`), and a client made of text and sockets.
//!
//! `matrix` tests every feature in every pair of revisions over every pair of transports and compares the
//! results with `docs/revisions.md`; with `SWITCHBOARD_WRITE_DOCS=1` it writes that file. Each of the other
//! modules tests one guarantee: verbatim bytes, order, state that cannot be forged, and servers that may
//! crash.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test may fail, and say how"
)]
#![allow(
    clippy::needless_pass_by_value,
    reason = "JSON is written down where it is handed over"
)]
#![cfg(target_os = "linux")]

mod client;
mod faults;
mod features;
mod matrix;
mod order;
mod people;
mod restart;
mod revision;
mod rig;
mod state;
mod table;
mod transparency;
