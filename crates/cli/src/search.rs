//! `switchboard search`: finds tools by what they do, as agents do, and explains the matches.

use std::fmt::Write as _;

use clap::Args;
use switchboard_catalog::escape;
use switchboard_config::Home;
use switchboard_rest::{
    status::Status,
    tools::{self, FoundTool, Match},
};
use switchboard_terminal::{
    error::Error,
    print::{self, Table},
};
use switchboard_wire::Raw;

use super::words::{self, count};
use crate::link::Link;

/// Search for tools by task.
///
/// Describe in plain words what you want to do, with or without quotes. Agents in the search view use the
/// same search. If nothing is found, the exit code is 1.
#[derive(Debug, Args)]
#[command(
    override_usage = "switchboard search [OPTIONS] QUERY...\n       switchboard search --forget"
)]
pub struct Search {
    /// Description of what you want to do
    #[arg(required_unless_present = "forget", num_args = 1..)]
    query: Vec<String>,
    /// Number of tools to show, up to 200
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=200))]
    limit: u16,
    #[command(flatten)]
    filter: Filter,
    /// Explain why each tool was found
    #[arg(long)]
    explain: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Clear the feedback from earlier searches
    #[arg(long, conflicts_with_all = ["query", "limit", "server", "read_only", "trusted", "explain", "json"])]
    forget: bool,
}

/// The filter of tools that are searched.
#[derive(Debug, Args)]
struct Filter {
    /// Only the tools of this server
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// Only tools that declare themselves read-only
    #[arg(long)]
    read_only: bool,
    /// Only tools without suspicious findings
    #[arg(long)]
    trusted: bool,
}

impl Filter {
    /// The names of the options that are set.
    fn set(&self) -> Vec<&'static str> {
        let all = [
            ("--server", self.server.is_some()),
            ("--read-only", self.read_only),
            ("--trusted", self.trusted),
        ];
        let set = all.iter().filter(|(_, is_set)| *is_set);
        set.map(|(name, _)| *name).collect()
    }
}

/// The longest query, in bytes: longer ones add nothing, and a URL has a limited length.
const QUERY_BYTES: usize = 4_000;

/// Runs the command.
pub fn run(home: &Home, args: &Search) -> Result<(), Error> {
    let mut query = args.query.join(" ");
    query.truncate(query.floor_char_boundary(QUERY_BYTES));
    if !args.forget && query.trim().is_empty() {
        return Err(Error::usage("the query is empty")
            .hint("describe what you want to do, such as `switchboard search read a file`"));
    }
    let link = Link::need(home)?;
    if args.forget {
        link.delete("/api/v1/search/learnt")?;
        print::say("cleared the feedback from earlier searches");
        return Ok(());
    }
    let found: Raw = link.get(&address(&query, args)).map_err(|failure| {
        if failure.message().starts_with("initializing") {
            return failure.hint("try again in a moment");
        }
        failure
    })?;
    let answer: tools::Search = found
        .read_owned()
        .map_err(|error| Error::new(format!("cannot parse the gateway's response: {error}")))?;
    if args.json {
        print::json_raw(&found)?;
    }
    if answer.tools.is_empty() {
        return Err(nothing(&link, &query, &args.filter));
    }
    if !args.json {
        table(&answer).print()?;
        if args.explain {
            print::data(&format!("\n{}\n", means(&answer)))?;
        }
    }
    Ok(())
}

fn address(query: &str, args: &Search) -> String {
    let mut address = format!("/api/v1/search?q={}&limit={}", escape(query), args.limit);
    if let Some(server) = &args.filter.server {
        // Writing to a string cannot fail.
        let _ = write!(address, "&server={}", escape(server));
    }
    for (is_set, name) in [
        (args.filter.read_only, "readOnly"),
        (args.filter.trusted, "trusted"),
        (args.explain, "explain"),
    ] {
        if is_set {
            let _ = write!(address, "&{name}=true");
        }
    }
    address
}

fn table(answer: &tools::Search) -> Table {
    let mut table = Table::new(&["SCORE", "TOOL", "DESCRIPTION"]);
    for tool in &answer.tools {
        table.row([
            format!("{:.2}", tool.score),
            tool.name.clone(),
            tool.summary.clone(),
        ]);
        let Some(why) = &tool.why else {
            continue;
        };
        let meaning = why
            .meaning
            .map_or_else(|| "–".to_owned(), |near| format!("{near:.2}"));
        table.note(&format!(
            "by keyword {:.2}, by meaning {meaning}, feedback {:.2}",
            why.words, why.learnt
        ));
        for found in &why.matches {
            table.note(&reason(tool, found));
        }
    }
    table
}

/// A word of the query, the word that matched it if that is another one, the fields, and the score.
fn reason(tool: &FoundTool, found: &Match) -> String {
    let word = if is_form_of(&found.word, &found.found) {
        found.word.clone()
    } else {
        format!("{} → {}", found.word, whole_word(tool, &found.found))
    };
    format!("{word}: {} ({:.2})", found.fields.join(", "), found.score)
}

/// Tests if a stem is that of the word itself. A stem is the beginning of the word except for its last
/// letter: `query` has the stem `queri`.
fn is_form_of(word: &str, stem: &str) -> bool {
    let alike = word.chars().zip(stem.chars()).take_while(|(a, b)| a == b);
    alike.count() + 1 >= stem.chars().count().max(3)
}

/// The whole word in which a stem was found, if it is visible: a stem may not be a word.
fn whole_word<'a>(tool: &'a FoundTool, stem: &'a str) -> String {
    let texts = [tool.name.as_str(), tool.summary.as_str()];
    let mut words = texts
        .iter()
        .flat_map(|text| text.split(|c: char| !c.is_alphanumeric()))
        .map(str::to_lowercase);
    words
        .find(|word| is_form_of(word, stem))
        .unwrap_or_else(|| stem.to_owned())
}

/// The ways in which the tools were found.
fn means(answer: &tools::Search) -> String {
    let how = if answer.by_meaning {
        "searched by keyword and by meaning"
    } else {
        "searched by keyword only"
    };
    let learnt = match answer.learnt {
        0 => "no feedback from earlier searches yet".to_owned(),
        1 => "feedback from earlier searches: 1 match".to_owned(),
        many => format!("feedback from earlier searches: {many} matches"),
    };
    format!("{how}; {learnt}")
}

/// The error that nothing was found: what to try, and what could not be searched.
fn nothing(link: &Link, query: &str, filter: &Filter) -> Error {
    let status: Status = match link.get("/api/v1/status") {
        Ok(status) => status,
        Err(failure) => return failure,
    };
    for server in &status.servers {
        let is_on_the_way = matches!(&*server.health.state, "starting" | "retrying");
        if is_on_the_way && server.tools == 0 {
            print::warn(&format!(
                "the tools of `{}` are not known yet: the server is {}",
                server.name, server.health.state
            ));
        }
    }
    if status.held > 0 {
        print::warn(&format!(
            "{} held and cannot be found",
            count(status.held, "tool is", "tools are")
        ));
        print::hint(&words::review(status.held, "switchboard trust"));
    }
    let mut hint = "try other words for what you want to do, in English".to_owned();
    let filters = filter.set();
    if !filters.is_empty() {
        let _ = write!(hint, ", or omit {}", filters.join(" and "));
    }
    hint.push_str("; `switchboard tools` lists all tools");
    Error::new(format!("no tool matches `{query}`")).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn synonyms_differ_from_inflected_forms() {
        let tool = FoundTool {
            name: "files:delete_entry".to_owned(),
            server: "files".to_owned(),
            tool: "delete_entry".to_owned(),
            summary: "Removes entries by query.".to_owned(),
            score: 1.0,
            why: None,
        };
        let shown = |word: &str, found: &str| {
            reason(
                &tool,
                &Match {
                    word: word.to_owned(),
                    found: found.to_owned(),
                    fields: vec!["name".to_owned(), "description".to_owned()],
                    score: 0.412,
                },
            )
        };
        for (word, found, expected) in [
            ("entry", "entri", "entry"),
            ("queries", "queri", "queries"),
            ("running", "run", "running"),
            ("erase", "delet", "erase → delete"),
            ("forecast", "weather", "forecast → weather"),
            ("ls", "list", "ls → list"),
        ] {
            let expected = format!("{expected}: name, description (0.41)");
            assert_eq!(shown(word, found), expected);
        }
    }
}
