//! Answers a server that wants the user to open a URL, for example to sign in.
//!
//! ```text
//! cargo run -p switchboard-client --example url_elicitation
//! ```
//!
//! The server is `@modelcontextprotocol/server-everything`, which npx downloads on first use.

#![expect(clippy::print_stdout, reason = "it is a command")]

use std::{
    error::Error,
    io::{self, BufRead as _, Write as _},
    time::Duration,
};

use serde_json::json;
use switchboard_client::{
    Client,
    model::{ElicitationAnswer, UrlElicitationRequest},
    stdio::{Command, Stdio},
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Command::new("npx").args(["-y", "@modelcontextprotocol/server-everything"]);
    let client = Client::builder("url-elicitation-example", "1.0")
        .on_url_elicitation(|request| async move {
            let agreed = tokio::task::spawn_blocking(move || ask(&request)).await;
            Ok(match agreed {
                Ok(Ok(true)) => ElicitationAnswer::consent(),
                Ok(Ok(false)) => ElicitationAnswer::decline(),
                _ => ElicitationAnswer::cancel(),
            })
        })
        .connect(Stdio::new(server));

    let arguments = json!({
        "url": "https://example.com/sign-in",
        "message": "Sign in to continue",
    });
    let call = client.call_tool("trigger-url-elicitation", arguments);
    let result = call.timeout(Duration::from_mins(5)).await?;
    println!("{}", result.text());

    client.stop().await;
    client.closed().await;
    Ok(())
}

/// Shows the URL and asks for consent. Never open a URL that the user has not seen: the server chose it.
fn ask(request: &UrlElicitationRequest) -> io::Result<bool> {
    println!("{}\n  {}", request.message, request.url);
    print!("Open it? [y/N] ");
    io::stdout().flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let agreed = line.trim().eq_ignore_ascii_case("y");
    if agreed {
        println!("(a program would open the browser here)");
    }
    Ok(agreed)
}
