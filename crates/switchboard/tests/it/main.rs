//! The command line as users see it: the real program, in a folder of its own, with and without a running
//! gateway.

#![expect(clippy::unwrap_used, reason = "a test fails by it")]

mod alone;
mod approvals;
mod asked;
mod audit;
mod calls;
mod certificates;
mod clients;
mod console;
mod deciding;
mod doctor;
mod edits;
mod exit_codes;
mod hardened;
mod help;
mod importing;
mod instances;
mod login;
mod memory;
mod memory_files;
mod memory_shared;
mod moving;
mod questions;
mod reference;
mod running;
mod search;
mod secrets;
mod snapshots;
mod spelled;
mod support;
mod terminal;
mod tokens;
mod trust;
mod watching;
