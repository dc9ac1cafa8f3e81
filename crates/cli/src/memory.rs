//! `switchboard memory`: the memory from the command line.
//!
//! Every command but `serve` and `repair` is a client of the built-in memory server, as any agent is: in the
//! running gateway, or in one that runs only for the duration of the command. The text of memories is hostile
//! until the user has read it: invisible characters in it are spelled out.

mod export;
mod forget;
mod import;
mod list;
mod pages;
mod recall;
mod repair;
mod scope;
mod serve;
mod session;
mod shapes;
mod show;
mod stats;
mod store;

use clap::{Args, Subcommand};
use switchboard_config::Home;
use switchboard_terminal::error::Error;

/// Store and recall memories.
///
/// Agents use the same memory, as the server `memory` of the gateway. These commands work with and without a
/// running gateway.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct MemoryArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    #[command(after_long_help = "\
Examples:
  switchboard memory store \"Ada prefers tea\"
  switchboard memory store \"The office is in Berlin\" --from 2026-05-01 --entity Berlin
  git log -1 | switchboard memory store - --type episodic --metadata '{\"repo\": \"site\"}'")]
    Store(store::Store),
    #[command(after_long_help = "\
Examples:
  switchboard memory recall what does Ada drink
  switchboard memory recall \"where is the office\" --namespace work --limit 3
  switchboard memory recall office --as-of 2025-01-01 --json")]
    Recall(recall::Recall),
    #[command(after_long_help = "\
Examples:
  switchboard memory list
  switchboard memory list --namespace work --type procedural
  switchboard memory list --all --json")]
    List(list::List),
    #[command(after_long_help = "\
Examples:
  switchboard memory show 019a0c5d3e21-5f0c1b2a3d4e5f60
  switchboard memory show 019a0c5d3e21-5f0c1b2a3d4e5f60 --history")]
    Show(show::Show),
    #[command(after_long_help = "\
Examples:
  switchboard memory forget 019a0c5d3e21-5f0c1b2a3d4e5f60
  switchboard memory forget ID ID --yes
  switchboard memory forget --all                     delete all, in every scope")]
    Forget(forget::Forget),
    #[command(after_long_help = "\
Examples:
  switchboard memory export memories.jsonl
  switchboard memory export memories.jsonl --history --force
  switchboard memory export --format markdown --namespace work > work.md")]
    Export(export::Export),
    #[command(after_long_help = "\
Examples:
  switchboard memory import memories.jsonl --dry-run
  switchboard memory import memories.jsonl --on-conflict replace
  switchboard memory export - | switchboard --home OTHER memory import -")]
    Import(import::Import),
    #[command(after_long_help = "\
Examples:
  switchboard memory stats
  switchboard memory stats --json")]
    Stats(stats::Stats),
    #[command(after_long_help = "\
Example of an entry for `switchboard memory serve` under `mcpServers` in a client's configuration:
  \"memory\": { \"command\": \"switchboard\", \"args\": [\"memory\", \"serve\"] }

To offer the memory together with all other servers, use `switchboard stdio` instead.")]
    Serve(serve::Serve),
    #[command(after_long_help = "\
Examples:
  switchboard memory repair
  switchboard memory repair --discard              start empty; the damaged file is kept")]
    Repair(repair::Repair),
}

/// Runs the command.
pub fn run(home: Home, args: &MemoryArgs) -> Result<(), Error> {
    match &args.what {
        What::Store(args) => store::run(&home, args),
        What::Recall(args) => recall::run(&home, args),
        What::List(args) => list::run(&home, args),
        What::Show(args) => show::run(&home, args),
        What::Forget(args) => forget::run(&home, args),
        What::Export(args) => export::run(&home, args),
        What::Import(args) => import::run(&home, args),
        What::Stats(args) => stats::run(&home, args),
        What::Serve(args) => serve::run(home, args),
        What::Repair(args) => repair::run(&home, args),
    }
}
