//! `cargo xtask eval`: measures how often search finds the right tool, and recall the right memory.

use crate::{USAGE, is_help, run_release};

const HELP: &str = "\
cargo xtask eval search|memory [SET.json] [--model FOLDER]

search
Measures hit@1, hit@5 and nDCG@5 of the search for tools, a row for each way of searching and for all
together, and what learning adds.

  SET.json        tools and queries: {\"tools\": [{\"name\", \"description\", …}], \"queries\": [{\"query\", \"tool\"}]};
                  $SWITCHBOARD_QUERIES unless given

memory
Measures how much of what answers a question is among the first 5 and 10 memories that are recalled, a row for
each way of finding them and for all together.

  SET.json        conversations and questions: {\"conversations\": [{\"conversation\",
                  \"turns\": [{\"id\", \"when\", \"speaker\", \"text\"}], \"questions\": [{\"question\", \"evidence\": [id]}]}]};
                  $SWITCHBOARD_MEMORIES unless given
  --size COUNT    instead of that, how fast so many made-up memories are indexed and recalled

  --model FOLDER  a sentence model to measure as well; $SWITCHBOARD_MODEL unless given";

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    if args.iter().any(|arg| is_help(arg)) {
        println!("{USAGE} {HELP}");
        return Ok(());
    }
    let what = args.first().map(String::as_str);
    if !matches!(what, Some("search" | "memory")) {
        return Err(format!("{USAGE} {HELP}"));
    }
    run_release("switchboard-eval", args)
}
