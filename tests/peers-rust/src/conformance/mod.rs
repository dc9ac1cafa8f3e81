//! The server that the conformance suite requires, built with rmcp 3.8 and in its style: a tool that needs an
//! answer while it runs calls `create_elicitation` or `create_message` of its peer. The scenarios of
//! 2026-07-28 have their own tools, in `inputs`, which return `InputRequiredResult`.

mod inputs;
mod server;
mod tools;

pub use server::serve;
