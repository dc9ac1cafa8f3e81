//! The command line: commands with examples, and exit codes.

use std::{env, ffi::OsString, fmt::Write as _, process::ExitCode};

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use switchboard_cli::place::{Place, check_running};
use switchboard_config::Home;
use switchboard_host::{serve, stdio};
use switchboard_terminal::{error::Error, print, usage};

/// One gateway for all MCP servers of your AI agents
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    place: Place,
    /// When to use colour
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Global options"
    )]
    color: print::ColourChoice,
    #[command(subcommand)]
    command: Command,
}

/// All commands, grouped by purpose and in the order in which a user needs them.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Servers",
        &[
            "add", "import", "remove", "enable", "disable", "restart", "login", "logout", "auth",
            "secret",
        ],
    ),
    ("Clients", &["connect", "clients"]),
    #[cfg(feature = "memory")]
    ("Tools", &["tools", "describe", "search", "call", "memory"]),
    #[cfg(not(feature = "memory"))]
    ("Tools", &["tools", "describe", "search", "call"]),
    ("Security", &["trust", "approvals", "token", "audit"]),
    ("Gateway", &["serve", "stdio", "stop", "console"]),
    (
        "Monitoring",
        &["status", "list", "activity", "logs", "doctor"],
    ),
    ("Other", &["completions", "man", "schema", "help"]),
];

const FIRST_STEPS: &str = "\
First steps:
  switchboard import            import the servers of your clients
  switchboard connect cursor    add the gateway to a client
  switchboard doctor            check for problems and suggest fixes
";

const LAST_WORDS: &str = "Run `switchboard COMMAND --help` for examples.";

const EXIT_CODES: &str =
    "Exit codes: 0 success, 1 failure, 2 usage error, 3 gateway not reachable.";

/// The command line, with its help in groups.
fn command() -> clap::Command {
    let command = Cli::command();
    let mut groups = String::new();
    for (heading, names) in GROUPS {
        // Writing to a string cannot fail.
        let _ = writeln!(groups, "{heading}:");
        for name in *names {
            let known = command.find_subcommand(name);
            let about = known.and_then(clap::Command::get_about);
            let about = about.map_or_else(|| HELP.to_owned(), ToString::to_string);
            let _ = writeln!(groups, "  {name:12}  {about}");
        }
        groups.push('\n');
    }
    let first = "{about}\n\n{usage-heading} {usage}\n\n";
    let last = "Options:\n{options}\n{after-help}";
    command
        .help_template(format!("{first}{groups}{last}"))
        .after_help(format!("{FIRST_STEPS}\n{LAST_WORDS}"))
        .after_long_help(format!("{FIRST_STEPS}\n{EXIT_CODES}\n\n{LAST_WORDS}"))
}

const HELP: &str = "Print this help, or the help of a command";

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
  switchboard add issues https://example.com/mcp \\
    --header 'Authorization=Bearer ${secret:issues}'
  switchboard add boxed --image mcp/time")]
    Add(switchboard_cli::servers::Add),
    /// Remove a server
    #[command(
        visible_alias = "rm",
        after_long_help = "\
Example:
  switchboard remove files"
    )]
    Remove(switchboard_cli::servers::Named),
    /// Enable a server
    #[command(after_long_help = "\
Example:
  switchboard enable files")]
    Enable(switchboard_cli::servers::Started),
    /// Disable a server but keep it in the configuration
    #[command(after_long_help = "\
Example:
  switchboard disable files")]
    Disable(switchboard_cli::servers::Named),
    /// Restart a server and clear its failure count
    #[command(after_long_help = "\
Example:
  switchboard restart files")]
    Restart(switchboard_cli::servers::Restarted),
    #[command(after_long_help = "\
Examples:
  switchboard login github
  switchboard login github --no-browser     on another machine, or over SSH")]
    Login(switchboard_cli::login::Login),
    #[command(after_long_help = "\
Example:
  switchboard logout github")]
    Logout(switchboard_cli::login::Logout),
    #[command(after_long_help = "\
Examples:
  switchboard auth list
  switchboard auth list --json")]
    Auth(switchboard_cli::login::Auth),
    #[command(after_long_help = "\
Examples:
  switchboard import                        import from all clients
  switchboard import cursor --dry-run       preview the changes
  switchboard import --project              include the files of this directory
  switchboard import .mcp.json --yes
  switchboard import --undo")]
    Import(switchboard_cli::import::Import),
    #[command(after_long_help = "\
Examples:
  switchboard secret set github            prompt for the value
  pass show github | switchboard secret set github
  switchboard secret list")]
    Secret(switchboard_cli::secret::Secret),
    #[command(after_long_help = "\
Examples:
  switchboard connect                       list the clients
  switchboard connect claude-desktop
  switchboard connect cursor --dry-run
  switchboard connect cursor --move         and remove servers there
  switchboard connect --all                 all clients that are found
  switchboard connect cursor --undo")]
    Connect(switchboard_cli::connect::Connect),
    #[command(after_long_help = "\
Examples:
  switchboard clients
  switchboard clients --json")]
    Clients(switchboard_cli::clients::Clients),
    #[command(
        visible_alias = "ps",
        after_long_help = "\
Examples:
  switchboard status
  switchboard status --json"
    )]
    Status(switchboard_cli::status::StatusArgs),
    #[command(
        visible_alias = "ls",
        after_long_help = "\
Examples:
  switchboard list
  switchboard list --json"
    )]
    List(switchboard_cli::list::List),
    #[command(after_long_help = "\
Examples:
  switchboard tools
  switchboard tools files --json")]
    Tools(switchboard_cli::tools::Tools),
    #[command(after_long_help = "\
Examples:
  switchboard search create an issue in a repository
  switchboard search \"weather in Berlin\" --limit 3 --explain
  switchboard search --forget")]
    Search(switchboard_cli::search::Search),
    #[command(after_long_help = "\
Examples:
  switchboard trust                          list held tools, with the reasons
  switchboard trust show files:read_file     show its changes, findings and definition
  switchboard trust approve files:read_file")]
    Trust(switchboard_cli::trust::Trust),
    #[command(after_long_help = "\
Examples:
  switchboard approvals                      list pending requests
  switchboard approvals show k7              show one request (an ID prefix is enough)
  switchboard approvals approve k7 --remember always --for 1h
  switchboard approvals reject k7 'not in this directory'
  switchboard approvals watch                follow and answer requests")]
    Approvals(switchboard_cli::approvals::Approvals),
    #[command(after_long_help = "\
Examples:
  switchboard token create laptop            a token to call tools over HTTP
  switchboard token list
  switchboard token revoke laptop")]
    Token(switchboard_cli::token::Token),
    #[command(after_long_help = "\
Examples:
  switchboard audit verify                   check that no entry was changed
  switchboard audit list -n 20
  switchboard audit export decisions.csv --format csv")]
    Audit(switchboard_cli::audit::Audit),
    #[command(after_long_help = "\
Examples:
  switchboard memory store \"Ada prefers tea\" --namespace home
  switchboard memory recall what does Ada drink
  switchboard memory list
  switchboard memory export memories.jsonl
  switchboard memory serve                   serve only the memory to a client")]
    #[cfg(feature = "memory")]
    Memory(switchboard_cli::memory::MemoryArgs),
    #[command(after_long_help = "\
Examples:
  switchboard call files:read_file path=/data/notes.txt
  switchboard call files:read_file '{\"path\": \"/data/notes.txt\"}'
  echo '{\"timezone\": \"UTC\"}' | switchboard call time:get_current_time - --json")]
    Call(switchboard_cli::call::Call),
    #[command(after_long_help = "\
Examples:
  switchboard describe time:get_current_time
  switchboard describe files:read_file --json")]
    Describe(switchboard_cli::describe::Describe),
    #[command(after_long_help = "\
Examples:
  switchboard activity                       list recent calls
  switchboard activity files --failed        list failed calls of one server
  switchboard activity files:read_file -n 5 --json")]
    Activity(switchboard_cli::activity::ActivityArgs),
    #[command(after_long_help = "\
Examples:
  switchboard logs files
  switchboard logs files -n 20 -f")]
    Logs(switchboard_cli::logs::Logs),
    #[command(after_long_help = "\
Examples:
  switchboard console
  switchboard console --open")]
    Console(switchboard_cli::console::Console),
    #[command(after_long_help = "\
Examples:
  switchboard doctor
  switchboard doctor --json")]
    Doctor(switchboard_cli::doctor::Doctor),
    #[command(after_long_help = "\
Example:
  switchboard stop")]
    Stop(switchboard_cli::stop::Stop),
    #[command(after_long_help = "\
Examples:
  switchboard completions bash > ~/.local/share/bash-completion/completions/switchboard
  switchboard completions zsh > ~/.zfunc/_switchboard
  switchboard completions fish > ~/.config/fish/completions/switchboard.fish")]
    Completions(switchboard_cli::Completions),
    #[command(after_long_help = "\
Example:
  switchboard man ~/.local/share/man/man1")]
    Man(switchboard_cli::Man),
    /// Print the JSON Schema of switchboard.json
    #[command(after_long_help = "\
Example:
  switchboard schema > switchboard.schema.json")]
    Schema,
}

fn parse() -> Result<Cli, Error> {
    let words: Vec<OsString> = env::args_os().skip(1).collect();
    // For help and usage errors, which are printed before the options are parsed.
    let colour = usage::colour(&words).unwrap_or_default();
    let mut command = command().color(colour.into());
    let matches = command.try_get_matches_from_mut(env::args_os());
    let parsed = matches.and_then(|mut matches| {
        let cli = Cli::from_arg_matches_mut(&mut matches);
        cli.map_err(|error| error.with_cmd(&command))
    });
    parsed.map_err(|error| {
        if usage::is_help(&error) {
            error.exit();
        }
        print::choose_colour(colour);
        usage::failure(&error, &command, &words)
    })
}

pub(crate) fn main() -> ExitCode {
    let done = parse().and_then(|cli| {
        print::choose_colour(cli.color);
        let home = cli.place.locate()?;
        run(home, &cli.place, &cli.command)
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            print::complain(&failure);
            failure.exit_code()
        }
    }
}

fn run(home: Home, place: &Place, command: &Command) -> Result<(), Error> {
    // These two create the configuration file.
    if !matches!(command, Command::Add(_) | Command::Import(_)) {
        place.check()?;
    }
    let changes = matches!(
        command,
        Command::Add(_) | Command::Remove(_) | Command::Import(_)
    );
    // A client may connect to any running gateway, and a second gateway is refused anyway.
    let is_gateway = matches!(command, Command::Serve(_) | Command::Stdio(_));
    if changes || (place.config.is_some() && !is_gateway) {
        check_running(&home)?;
    }
    match command {
        Command::Serve(args) => serve::run(home, args),
        Command::Stdio(args) => stdio::run(home, args),
        Command::Add(args) => switchboard_cli::servers::add(&home, place, args),
        Command::Remove(args) => switchboard_cli::servers::remove(&home, args),
        Command::Enable(args) => switchboard_cli::servers::enable(&home, place, args),
        Command::Disable(args) => switchboard_cli::servers::disable(&home, args),
        Command::Restart(args) => switchboard_cli::servers::restart(&home, place, args),
        Command::Login(args) => switchboard_cli::login::login(&home, place, args),
        Command::Logout(args) => switchboard_cli::login::logout(&home, place, args),
        Command::Auth(args) => switchboard_cli::login::auth(&home, place, args),
        Command::Import(args) => switchboard_cli::import::run(&home, place, args),
        Command::Secret(args) => switchboard_cli::secret::run(&home, args),
        Command::Connect(args) => switchboard_cli::connect::run(&home, place, args),
        Command::Clients(args) => switchboard_cli::clients::run(&home, args),
        Command::Status(args) => switchboard_cli::status::run(&home, args),
        Command::List(args) => switchboard_cli::list::run(&home, args),
        Command::Tools(args) => switchboard_cli::tools::run(&home, args),
        Command::Search(args) => switchboard_cli::search::run(&home, args),
        Command::Trust(args) => switchboard_cli::trust::run(&home, args),
        Command::Approvals(args) => switchboard_cli::approvals::run(&home, args),
        Command::Token(args) => switchboard_cli::token::run(&home, args),
        Command::Audit(args) => switchboard_cli::audit::run(&home, args),
        #[cfg(feature = "memory")]
        Command::Memory(args) => switchboard_cli::memory::run(home, args),
        Command::Call(args) => switchboard_cli::call::run(&home, args),
        Command::Describe(args) => switchboard_cli::describe::run(&home, args),
        Command::Activity(args) => switchboard_cli::activity::run(&home, args),
        Command::Logs(args) => switchboard_cli::logs::run(&home, args),
        Command::Console(args) => switchboard_cli::console::run(&home, args),
        Command::Doctor(args) => switchboard_cli::doctor::run(&home, args),
        Command::Stop(_) => switchboard_cli::stop::run(&home),
        Command::Completions(args) => switchboard_cli::completions::<Cli>(args),
        Command::Man(args) => switchboard_cli::man(Cli::command(), args),
        Command::Schema => switchboard_cli::schema(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let command = command();
        let mut grouped: Vec<_> = GROUPS
            .iter()
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        grouped.retain(|name| *name != "help");
        grouped.sort_unstable();
        let mut all: Vec<_> = command
            .get_subcommands()
            .map(clap::Command::get_name)
            .collect();
        all.sort_unstable();
        assert_eq!(grouped, all);
        // Each fits on one line of a terminal with 80 columns.
        for one in command.get_subcommands() {
            let about = one.get_about().unwrap().to_string();
            assert!(about.chars().count() <= 64, "{about}");
        }
    }
}
