//! An MCP server of every protocol revision, on every transport, written by hand.
//!
//! It offers what the official conformance suite asks of a server, and what the tests of the gateway
//! look at besides. It shares no code with the gateway, so that it judges what the gateway sends.
//!
//! ```text
//! protocol_fixture --revisions 2024-11-05|2025-03-26|2025-06-18|2025-11-25|2026-07-28|legacy|both
//!                  --transport stdio|http|sse [--port 0] [--paged] [--ttl MS] [--scope public|private]
//! ```

mod call;
mod feed;
mod http;
mod legacy;
mod modern;
mod offers;
mod options;
mod rpc;
mod seal;
mod session;
mod sse;
mod stdio;
mod tasks;
mod tools;
mod world;

use std::{
    env,
    io::{self, Write},
    process::ExitCode,
};

use options::{Options, Transport};
use world::World;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "protocol_fixture: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> io::Result<()> {
    let options = Options::parse(env::args().skip(1))?;
    let transport = options.transport;
    let port = options.port;
    let world = World::new(options)?;
    match transport {
        Transport::Stdio => stdio::serve(world).await,
        Transport::Http => http::serve(world, port).await,
        Transport::Sse => sse::serve(world, port).await,
    }
}
