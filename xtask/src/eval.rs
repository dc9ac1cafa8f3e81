//! `cargo xtask eval`: measures how often search finds the right tool, and recall the right memory.

use crate::{USAGE, is_help, run_release};

const HELP: &str = "\
cargo xtask eval search|memory [SET.json] [--model FOLDER]

search
Measure hit@1, hit@5 and nDCG@5 of the search for tools, with one row per method and one for all methods
together, and the effect of search feedback.

  SET.json        Tools and queries: {\"tools\": [{\"name\", \"description\", …}], \"queries\": [{\"query\", \"tool\"}]}
                  (default: $SWITCHBOARD_QUERIES)

memory
Measure recall@5 and recall@10: the share of the evidence for a question among the first 5 and 10 memories, with
one row per method and one for all methods together.

  SET.json        Conversations and questions: {\"conversations\": [{\"conversation\",
                  \"turns\": [{\"id\", \"when\", \"speaker\", \"text\"}], \"questions\": [{\"question\", \"evidence\": [id]}]}]}
                  (default: $SWITCHBOARD_MEMORIES)
  --size COUNT    Instead, measure the speed of indexing and recalling this number of generated memories

  --model FOLDER  Sentence model to measure as well (default: $SWITCHBOARD_MODEL)

Example: cargo xtask eval search queries.json --model .tools/model";

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
