//! Signs in to a server with OAuth, and lists its tools.
//!
//! ```text
//! cargo run -p switchboard-client --example oauth -- https://mcp.example.com/mcp
//! ```

#![expect(clippy::print_stdout, reason = "it is a command")]

use std::{
    env,
    error::Error,
    io::{BufRead as _, stdin},
};

use switchboard_client::{
    Client,
    auth::{InMemory, OAuth, Settings},
    http::Http,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::args().nth(1).ok_or("name the URL of a server")?;
    // Implement `auth::Store` to keep the user signed in.
    let oauth = OAuth::start(&url, Settings::new("example"), InMemory::default())?;
    if let Some(mut opened) = oauth.sign_in().await? {
        println!("Open {} in a browser.", opened.url());
        opened.finish().await?;
    }
    println!("signed in: {:?}", oauth.state());

    let client = Client::connect(Http::new(&url)?.oauth(&oauth)?);
    for tool in client.tools().all().await? {
        println!("{}", tool.name);
    }
    client.stop().await;

    println!("Press Enter to sign out.");
    stdin().lock().lines().next();
    oauth.sign_out().await?;
    Ok(())
}
