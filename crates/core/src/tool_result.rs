//! What the search view answers: small, and complete enough to call a tool with.
//!
//! An answer is given twice, as text and as structure, since clients show their models the one or the other.
//! Both together stay within a budget: texts are shortened until they fit.

use serde::Deserialize;
use switchboard_base::error::Error;
use switchboard_catalog::{Catalog, Item, Kind};
use switchboard_client::Raw;
use switchboard_schema::outline;
use switchboard_search::{Found, Hit};

/// How much is told of each tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Detail {
    #[default]
    Compact,
    Full,
}

/// A compact answer has so many bytes for each tool that was asked for. With what 2026-07-28 wants on every
/// result, five are below 1.5 KB.
const BYTES_EACH: usize = 272;
/// A full one has so many altogether; what does not fit is told in short.
const BYTES_FULL: usize = 48 * 1024;
/// How long what is said of a tool, and its parameters, may be: the first pair with which all fit is taken.
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
/// What a server wants a model to know is told with its tools, so far.
const INSTRUCTIONS_BYTES: usize = 1_024;

/// What was found.
pub(crate) fn found(catalog: &Catalog, found: &Found, limit: usize, detail: Detail) -> Raw {
    let tools: Vec<(&Hit, Item<'_>)> = found
        .hits
        .iter()
        .filter_map(|hit| {
            // It may have vanished since it was found.
            let part = catalog.server(&hit.server)?;
            Some((hit, part.find(Kind::Tool, &hit.name)?))
        })
        .collect();
    if tools.is_empty() {
        let text = "No tool fits. Try other words for what you want to do, in English, or leave out filters.";
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
    // Names alone are given whole: a name that is cut is of no use.
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

/// An error that an agent can do something about.
pub(crate) fn error(text: &str) -> Raw {
    Raw::object([
        ("content", Raw::array([text_block(text)])),
        ("isError", Raw::from(true)),
    ])
}

/// A failure that an agent should read.
pub(crate) fn failed(failure: Error) -> Raw {
    match failure.into_tool_result() {
        Ok(result) => result,
        Err(refused) => error(&refused.message),
    }
}

/// A result, as text and as structure.
pub(crate) fn result(text: &str, structure: Raw) -> Raw {
    Raw::object([
        ("content", Raw::array([text_block(text)])),
        ("structuredContent", structure),
    ])
}

/// A result of a tool with remarks of the gateway at its end. One without content, such as a question, stays as it is.
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

/// A tool in a line.
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
            name: format!("{}:{}", tool.server(), tool.name()),
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
    // Two digits are all that it is worth.
    let score = format!("{:.2}", hit.score);
    Raw::parse(score).unwrap_or_else(|_| Raw::number(0))
}

fn definition(tool: &Item<'_>) -> Raw {
    let name = Raw::string(&format!("{}:{}", tool.server(), tool.name()));
    // These are for programs, and are not scanned for what they tell a model.
    let judged = tool.shown().without(&switchboard_trust::UNREAD);
    judged.with_member("name", &name).unwrap_or(judged)
}

/// A summary is made of so much of a text.
const SUMMARY_BYTES: usize = 4 * 1024;

/// What a text says first, in at most so many bytes.
pub fn summary(text: &str, most: usize) -> String {
    // Lines that were broken to be read belong together.
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
