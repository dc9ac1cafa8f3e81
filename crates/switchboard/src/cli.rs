//! The command line: what can be asked, with an example each, and the exit code.

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Parser, Subcommand};
use switchboard_config::Home;

use crate::{commands, failure::Failure, print, serve, stdio};

/// One program through which AI agents use all their MCP servers.
#[derive(Debug, Parser)]
#[command(
    version,
    max_term_width = 100,
    arg_required_else_help = true,
    after_help = FIRST_STEPS,
    after_long_help = EXIT_CODES
)]
struct Cli {
    #[command(flatten)]
    place: Place,
    #[command(subcommand)]
    command: Command,
}

const FIRST_STEPS: &str = "\
First steps:
  switchboard import            take over the servers of your clients
  switchboard connect cursor    put the gateway into a client
  switchboard doctor            find out what is wrong, if something is

`switchboard COMMAND --help` has examples.";

const EXIT_CODES: &str = "\
First steps:
  switchboard import            take over the servers of your clients
  switchboard connect cursor    put the gateway into a client
  switchboard doctor            find out what is wrong, if something is

Exit codes: 0 done, 1 what was asked for failed, 2 wrong usage, 3 no gateway can be reached.

`switchboard COMMAND --help` has examples.";

/// Where the gateway lives. Goes with every command.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// The gateway's folder: configuration, logs, data
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        help_heading = "Every command"
    )]
    home: Option<PathBuf>,
    /// The configuration file, if it is not switchboard.json in the folder
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        help_heading = "Every command"
    )]
    config: Option<PathBuf>,
}

impl Place {
    /// To run without a configuration is fine; to run without the one that was named is not.
    fn check(&self) -> Result<(), Failure> {
        match &self.config {
            Some(file) if !file.exists() => Err(Failure::new(format!(
                "there is no configuration {}",
                file.display()
            ))
            .hint("check the spelling; `switchboard add`, with the same --config, makes it")),
            _ => Ok(()),
        }
    }

    pub(crate) fn locate(&self) -> Result<Home, Failure> {
        Ok(Home::locate(self.home.as_deref(), self.config.as_deref())?)
    }

    /// The same place for a program that is started elsewhere, with another environment.
    pub(crate) fn to_args(&self, home: &Home) -> Vec<String> {
        let mut args = Vec::new();
        let from_variable = std::env::var_os("SWITCHBOARD_HOME").filter(|home| !home.is_empty());
        if self.home.is_some() || from_variable.is_some() {
            let folder = home.logs();
            let folder = folder.parent().unwrap_or(&folder);
            args.extend(["--home".to_owned(), folder.display().to_string()]);
        }
        if self.config.is_some() {
            args.extend([
                "--config".to_owned(),
                home.config_file().display().to_string(),
            ]);
        }
        args
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(after_long_help = "\
Examples:
  switchboard serve
  switchboard serve --listen 127.0.0.1:9000 --log-level debug")]
    Serve(serve::Serve),
    #[command(after_long_help = "\
Example, as an entry of `mcpServers` in a client's configuration:
  \"switchboard\": { \"command\": \"switchboard\", \"args\": [\"stdio\"] }

`switchboard connect CLIENT` writes it for you.")]
    Stdio(stdio::StdioArgs),
    #[command(after_long_help = "\
Examples:
  switchboard add files -- npx -y @modelcontextprotocol/server-filesystem /data
  switchboard add time --env TZ=UTC -- uvx mcp-server-time
  switchboard add k8s --inherit-env KUBECONFIG -- npx -y kubernetes-mcp-server
  switchboard add issues https://example.com/mcp --header 'Authorization=Bearer ${secret:issues}'
  switchboard add boxed --image mcp/time")]
    Add(commands::servers::Add),
    /// Remove a server
    #[command(after_long_help = "\
Example:
  switchboard remove files")]
    Remove(commands::servers::Named),
    /// Switch a server on
    #[command(after_long_help = "\
Example:
  switchboard enable files")]
    Enable(commands::servers::Named),
    /// Switch a server off; it stays in the configuration
    #[command(after_long_help = "\
Example:
  switchboard disable files")]
    Disable(commands::servers::Named),
    /// Start a server anew; one that has been given up is tried again
    #[command(after_long_help = "\
Example:
  switchboard restart files")]
    Restart(commands::servers::Named),
    #[command(after_long_help = "\
Examples:
  switchboard import                        everything that is found
  switchboard import cursor --dry-run       look only
  switchboard import --project              also the files of this folder, each after a question
  switchboard import .mcp.json --yes
  switchboard import --undo")]
    Import(commands::import::Import),
    #[command(after_long_help = "\
Examples:
  switchboard secret set github            asks for the value
  pass show github | switchboard secret set github
  switchboard secret list")]
    Secret(commands::secret::Secret),
    #[command(after_long_help = "\
Examples:
  switchboard connect claude-desktop
  switchboard connect cursor --dry-run
  switchboard connect cursor --undo")]
    Connect(commands::connect::Connect),
    #[command(after_long_help = "\
Examples:
  switchboard status
  switchboard status --json")]
    Status(commands::status::StatusArgs),
    #[command(after_long_help = "\
Examples:
  switchboard list
  switchboard list --json")]
    List(commands::list::List),
    #[command(after_long_help = "\
Examples:
  switchboard tools
  switchboard tools files --json")]
    Tools(commands::tools::Tools),
    #[command(after_long_help = "\
Examples:
  switchboard search create an issue in a repository
  switchboard search \"weather in Berlin\" --limit 3 --explain
  switchboard search --forget")]
    Search(commands::search::Search),
    #[command(after_long_help = "\
Examples:
  switchboard trust                          what is held back, and why
  switchboard trust show files:read_file     what changed, what is suspicious, what it says
  switchboard trust approve files:read_file")]
    Trust(commands::trust::Trust),
    #[command(after_long_help = "\
Examples:
  switchboard approvals                      what waits for you
  switchboard approvals show k7              all of one; the beginning of its name will do
  switchboard approvals approve k7 --remember session
  switchboard approvals reject k7 'not in this folder'
  switchboard approvals watch                tells and asks as it happens")]
    Approvals(commands::approvals::Approvals),
    #[command(after_long_help = "\
Examples:
  switchboard audit verify                   has anybody changed it?
  switchboard audit list -n 20
  switchboard audit export decisions.csv --format csv")]
    Audit(commands::audit::Audit),
    #[command(after_long_help = "\
Examples:
  switchboard memory store \"Ada prefers tea\" --namespace home
  switchboard memory recall what does Ada drink
  switchboard memory list
  switchboard memory export memories.jsonl
  switchboard memory serve                   for a client that is to see the memory alone")]
    Memory(commands::memory::MemoryArgs),
    #[command(after_long_help = "\
Examples:
  switchboard call files:read_file '{\"path\": \"/data/notes.txt\"}'
  echo '{\"timezone\": \"UTC\"}' | switchboard call time:get_current_time - --json")]
    Call(commands::call::Call),
    #[command(after_long_help = "\
Examples:
  switchboard logs files
  switchboard logs files -n 20 -f")]
    Logs(commands::logs::Logs),
    #[command(after_long_help = "\
Examples:
  switchboard console
  switchboard console --open")]
    Console(commands::console::Console),
    #[command(after_long_help = "\
Examples:
  switchboard doctor
  switchboard doctor --json")]
    Doctor(commands::doctor::Doctor),
    #[command(after_long_help = "\
Example:
  switchboard stop")]
    Stop(commands::stop::Stop),
    #[command(after_long_help = "\
Examples:
  switchboard completions bash > ~/.local/share/bash-completion/completions/switchboard
  switchboard completions zsh > ~/.zfunc/_switchboard
  switchboard completions fish > ~/.config/fish/completions/switchboard.fish")]
    Completions(commands::Completions),
    /// Print the JSON Schema of switchboard.json
    #[command(after_long_help = "\
Example:
  switchboard schema > switchboard.schema.json")]
    Schema,
}

pub(crate) fn main() -> ExitCode {
    let Cli { place, command } = Cli::parse();
    match place.locate().and_then(|home| run(home, &place, &command)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            print::complain(&failure);
            failure.exit_code()
        }
    }
}

fn run(home: Home, place: &Place, command: &Command) -> Result<(), Failure> {
    match command {
        Command::Serve(args) => {
            place.check()?;
            serve::run(home, args)
        }
        Command::Stdio(args) => {
            place.check()?;
            stdio::run(home, args)
        }
        Command::Add(args) => commands::servers::add(&home, place, args),
        Command::Remove(args) => commands::servers::remove(&home, args),
        Command::Enable(args) => commands::servers::enable(&home, args),
        Command::Disable(args) => commands::servers::disable(&home, args),
        Command::Restart(args) => commands::servers::restart(&home, args),
        Command::Import(args) => commands::import::run(&home, place, args),
        Command::Secret(args) => commands::secret::run(&home, args),
        Command::Connect(args) => commands::connect::run(&home, place, args),
        Command::Status(args) => commands::status::run(&home, args),
        Command::List(args) => commands::list::run(&home, args),
        Command::Tools(args) => commands::tools::run(&home, args),
        Command::Search(args) => commands::search::run(&home, args),
        Command::Trust(args) => commands::trust::run(&home, args),
        Command::Approvals(args) => commands::approvals::run(&home, args),
        Command::Audit(args) => commands::audit::run(&home, args),
        Command::Memory(args) => {
            place.check()?;
            commands::memory::run(home, args)
        }
        Command::Call(args) => commands::call::run(&home, args),
        Command::Logs(args) => commands::logs::run(&home, args),
        Command::Console(args) => commands::console::run(&home, args),
        Command::Doctor(args) => commands::doctor::run(&home, args),
        Command::Stop(_) => commands::stop::run(&home),
        Command::Completions(args) => commands::completions::<Cli>(args),
        Command::Schema => commands::schema(),
    }
}
