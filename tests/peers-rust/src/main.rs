//! Servers and clients built with rmcp, the official Rust SDK: a current version, and one from a year ago.
//!
//! ```text
//! rust-peer server new|old stdio|http    a server, on the pipe or at /mcp on a port that it prints to stderr
//! rust-peer server old sse               HTTP+SSE of 2024-11-05, at /sse
//! rust-peer conformance ERAS stdio|http  the server that the conformance suite requires; ERAS is both, old or new
//! rust-peer client new|old JOB           a client that runs tours; its findings go to stdout
//! ```

mod conformance;
mod new;
mod old;
mod peer;
mod tour;

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match *words {
        ["server", "new", "stdio"] => new::server::stdio().await,
        ["server", "new", "http"] => new::server::http().await,
        ["server", "old", "stdio"] => old::server::stdio().await,
        ["server", "old", "http"] => old::server::http().await,
        ["server", "old", "sse"] => old::server::sse().await,
        ["conformance", eras, transport] => conformance::serve(eras, transport).await,
        ["client", "new", job] => tour::all(job, new::client::connect).await,
        ["client", "old", job] => tour::all(job, old::client::connect).await,
        _ => Err(
            "usage: rust-peer server|client|conformance new|old|both stdio|http|sse|JOB".to_owned(),
        ),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
