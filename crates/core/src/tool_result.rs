//! Results of the search view: small, and complete enough to call a tool with.
//!
//! A result has its content twice, as text and as structured content, since clients show their
//! models one or the other. Both together stay within a budget: texts are shortened until they fit.

use serde::Deserialize;
use switchboard_base::error::Error;
use switchboard_catalog::{Catalog, Item, Kind};
use switchboard_client::Raw;
use switchboard_schema::outline;
use switchboard_search::{Found, Hit};

/// The amount of detail per tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Detail {
    #[default]
    Compact,
    Full,
}

/// Budget in bytes of a compact result, for each requested tool. With the members that 2026-07-28
/// adds to every result, five tools are below 1.5 KB.
const BYTES_EACH: usize = 272;
/// Budget in bytes of a full result. Tools that do not fit are given in compact form.
const BYTES_FULL: usize = 48 * 1024;
/// The most bytes of a tool's description and of its parameters. The first pair with which all
/// tools fit is used.
const LENGTHS: [(usize, usize); 9] = [
    (160, 120),
    (120, 90),
    (100, 60),
    (80, 50),
    (70, 40),
    (60, 30),
    (48, 16),
    (32, 0),
    (0, 0),
];
/// The most bytes of a server's instructions in the description of a tool.
const INSTRUCTIONS_BYTES: usize = 1_024;

/// The result of a search.
pub(crate) fn found(catalog: &Catalog, found: &Found, limit: usize, detail: Detail) -> Raw {
    let tools: Vec<(&Hit, Item<'_>)> = found
        .hits
        .iter()
        .filter_map(|hit| {
            // The tool may have vanished since the search.
            let part = catalog.server(&hit.server)?;
            Some((hit, part.find_shown(Kind::Tool, &hit.name)?))
        })
        .collect();
    if tools.is_empty() {
        let text = "No tool matches. Describe in other words what you want to do, in English, or remove filters.";
        return result(text, Raw::object([("tools", Raw::array([]))]));
    }
    match detail {
        Detail::Compact => compact(&tools, BYTES_EACH * limit),
        Detail::Full => full(&tools),
    }
}

fn compact(tools: &[(&Hit, Item<'_>)], budget: usize) -> Raw {
    let mut smallest = None;
    for (says, takes) in LENGTHS {
        let lines: Vec<Line> = tools
            .iter()
            .map(|(hit, tool)| Line::new(hit, tool, says, takes))
            .collect();
        let text: Vec<String> = lines.iter().map(Line::text).collect();
        let structure = Raw::array(lines.iter().map(Line::structure));
        let answer = result(&text.join("\n"), Raw::object([("tools", structure)]));
        if answer.as_bytes().len() <= budget {
            return answer;
        }
        smallest = Some(answer);
    }
    // Names are never cut, since a partial name is of no use.
    smallest.unwrap_or_else(Raw::empty_object)
}

fn full(tools: &[(&Hit, Item<'_>)]) -> Raw {
    let mut left = BYTES_FULL;
    let definitions = tools.iter().map(|(hit, tool)| {
        let definition = definition(tool);
        let length = definition.as_bytes().len();
        let whole = length <= left;
        left = left.saturating_sub(length);
        let given = if whole {
            definition
        } else {
            Line::new(hit, tool, 100, 60).structure()
        };
        given.with_member("score", &score(hit)).unwrap_or(given)
    });
    let tools = Raw::object([("tools", Raw::array(definitions))]);
    result(tools.as_str(), tools.clone())
}

/// The whole definition of a tool, under the name by which it is called.
pub(crate) fn described(catalog: &Catalog, tool: &Item<'_>) -> Raw {
    let mut definition = definition(tool);
    let part = catalog.server(tool.server());
    if let Some(said) = part.and_then(|part| part.offers().instructions.as_deref()) {
        let said = &said[..said.floor_char_boundary(INSTRUCTIONS_BYTES)];
        let with = definition.with_member("serverInstructions", &Raw::string(said));
        definition = with.unwrap_or(definition);
    }
    result(definition.as_str(), definition.clone())
}

/// An error that an agent can act on.
pub(crate) fn error(text: &str) -> Raw {
    Raw::object([
        ("content", Raw::array([text_block(text)])),
        ("isError", Raw::from(true)),
    ])
}

/// A failure, as a result that the agent reads.
pub(crate) fn failed(failure: Error) -> Raw {
    match failure.into_tool_result() {
        Ok(result) => result,
        Err(refused) => error(&refused.message),
    }
}

/// A result, as text and as structured content.
pub(crate) fn result(text: &str, structure: Raw) -> Raw {
    Raw::object([
        ("content", Raw::array([text_block(text)])),
        ("structuredContent", structure),
    ])
}

/// Appends the gateway's remarks to the result of a tool. A result without content, such as a
/// question, stays unchanged.
pub(crate) fn noted(result: Raw, remarks: &[String]) -> Raw {
    let content = result.member("content").and_then(|it| it.elements());
    let Some(mut content) = content.filter(|_| !remarks.is_empty()) else {
        return result;
    };
    content.push(text_block(&format!("[switchboard] {}", remarks.join("\n"))));
    let with = result.with_member("content", &Raw::array(content));
    with.unwrap_or(result)
}

fn text_block(text: &str) -> Raw {
    Raw::object([("type", Raw::string("text")), ("text", Raw::string(text))])
}

/// A tool in one line.
struct Line {
    name: String,
    says: String,
    takes: String,
    score: Raw,
}

impl Line {
    fn new(hit: &Hit, tool: &Item<'_>, says: usize, takes: usize) -> Self {
        let described = tool.shown().member("description");
        let described = described
            .and_then(|text| text.to_text())
            .unwrap_or_default();
        let takes = match tool.shown().member("inputSchema") {
            Some(schema) if takes > 0 => outline(&schema, takes).text,
            _ => String::new(),
        };
        Self {
            name: format!("{}:{}", tool.server(), tool.shown_name()),
            says: summary(&described, says),
            takes,
            score: score(hit),
        }
    }

    fn text(&self) -> String {
        let Self {
            name, says, takes, ..
        } = self;
        let between = if says.is_empty() { "" } else { " - " };
        format!("{name}({takes}){between}{says}")
    }

    fn structure(&self) -> Raw {
        let mut members = vec![("name", Raw::string(&self.name))];
        if !self.says.is_empty() {
            members.push(("summary", Raw::string(&self.says)));
        }
        if !self.takes.is_empty() {
            members.push(("parameters", Raw::string(&self.takes)));
        }
        members.push(("score", self.score.clone()));
        Raw::object(members)
    }
}

fn score(hit: &Hit) -> Raw {
    // More than two digits would suggest a false precision.
    let score = format!("{:.2}", hit.score);
    Raw::parse(score).unwrap_or_else(|_| Raw::number(0))
}

fn definition(tool: &Item<'_>) -> Raw {
    let name = Raw::string(&format!("{}:{}", tool.server(), tool.shown_name()));
    // These members are for programs, and are not scanned for text that addresses a model.
    let judged = tool.shown().without(&switchboard_trust::UNREAD);
    judged.with_member("name", &name).unwrap_or(judged)
}

/// The most bytes of a text that are read for a summary.
const SUMMARY_BYTES: usize = 4 * 1024;

/// The first sentence of a text, in at most `most` bytes.
pub fn summary(text: &str, most: usize) -> String {
    // Lines that were wrapped for reading belong together.
    let text = &text[..text.floor_char_boundary(SUMMARY_BYTES)];
    let paragraph = text.trim_start().split("\n\n").next().unwrap_or_default();
    let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let clean: String = line.chars().filter(|c| !c.is_control()).collect();
    let end = clean
        .match_indices(". ")
        .map(|(at, _)| at + 1)
        .find(|at| *at >= 20)
        .unwrap_or(clean.len());
    let sentence = clean[..end].trim_end_matches('.');
    if sentence.len() <= most {
        return sentence.to_owned();
    }
    let short = &sentence[..sentence.floor_char_boundary(most.saturating_sub('…'.len_utf8()))];
    if short.is_empty() {
        return String::new();
    }
    let word = short.rfind(' ').filter(|at| *at >= short.len() / 2);
    format!("{}…", &short[..word.unwrap_or(short.len())])
}
