//! `cargo xtask eval search`: how often the right tool is found.

use crate::{USAGE, is_help, run_release};

const HELP: &str = "\
cargo xtask eval search [SET.json] [--model FOLDER]

Measures hit@1, hit@5 and nDCG@5 of the search for tools, a row for each way of searching and for all
together, and what learning adds.

  SET.json        tools and queries: {\"tools\": [{\"name\", \"description\", …}], \"queries\": [{\"query\", \"tool\"}]};
                  $SWITCHBOARD_QUERIES unless given
  --model FOLDER  a sentence model to measure as well; $SWITCHBOARD_MODEL unless given";

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    if args.iter().any(|arg| is_help(arg)) {
        println!("{USAGE} {HELP}");
        return Ok(());
    }
    if args.first().map(String::as_str) != Some("search") {
        return Err(format!("{USAGE} {HELP}"));
    }
    run_release("switchboard-eval", args)
}
