//! Lists the tools of a stdio server, or calls one.
//!
//! ```text
//! cargo run --example tools -- [--call TOOL JSON] COMMAND [ARG…]
//! ```

use std::{env, error::Error, process::ExitCode};

use switchboard_client::{
    Client, State,
    stdio::{Command, Stdio},
};

#[expect(clippy::print_stderr, reason = "it is a command")]
#[tokio::main]
async fn main() -> ExitCode {
    let mut args: Vec<String> = env::args().skip(1).collect();
    let call = if args.first().is_some_and(|arg| arg == "--call") && args.len() > 3 {
        let mut call = args.drain(..3).skip(1);
        call.next().zip(call.next())
    } else {
        None
    };
    let Some((command, rest)) = args.split_first() else {
        eprintln!("usage: tools [--call TOOL JSON] COMMAND [ARG…]");
        return ExitCode::from(2);
    };
    let client = Client::connect(Stdio::new(Command::new(command).args(rest)));
    let mut state = client.watch_state();
    tokio::spawn(async move {
        while state.changed().await.is_ok() {
            if let trouble @ State::Backoff { .. } = &*state.borrow_and_update() {
                eprintln!("{trouble}, trying again");
            }
        }
    });
    let done = run(&client, call).await;
    client.stop().await;
    client.closed().await;
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, clippy::print_stdout, reason = "it is a command")]
async fn run(client: &Client, call: Option<(String, String)>) -> Result<(), Box<dyn Error>> {
    if let Some((name, arguments)) = call {
        let arguments: serde_json::Value = serde_json::from_str(&arguments)
            .map_err(|error| format!("the arguments are not JSON: {error}"))?;
        let result = client
            .call_tool(name, arguments)
            .on_progress(|progress| eprintln!("{} of {:?}", progress.progress, progress.total))
            .await?;
        if result.is_error {
            return Err(result.text().into());
        }
        println!("{}", result.text());
        return Ok(());
    }
    let tools = client.tools().all().await?;
    let session = client.ready().await?;
    println!("{} tools, protocol {}", tools.len(), session.revision);
    for tool in tools {
        let description = tool.description.as_deref().unwrap_or_default();
        println!(
            "{:32} {}",
            tool.name,
            description.lines().next().unwrap_or_default()
        );
    }
    Ok(())
}
