//! `switchboard describe`: one tool, with what it takes; and tools by name, for whoever calls them.

use std::fmt::Write as _;

use clap::Args;
use serde::Deserialize;
use switchboard_catalog::escape;
use switchboard_config::Home;
use switchboard_schema::{outline, shape};
use switchboard_wire::Raw;

use super::visible::{visible, visible_line};
use crate::{
    failure::Failure,
    link::Link,
    print::{self, shell_word},
};

/// Show what a tool does and what it takes.
#[derive(Debug, Args)]
pub(crate) struct Describe {
    /// The tool, as `switchboard tools` shows it
    #[arg(value_name = "NAME:TOOL")]
    tool: String,
    /// Print the definition as the server sent it
    #[arg(long)]
    json: bool,
}

/// So much room is given to the parameters.
const SHAPE_BYTES: usize = 16 * 1024;
/// An example has no more than this many parameters.
const EXAMPLE: usize = 4;

/// A tool that the gateway shows.
#[derive(Debug, Deserialize)]
pub(super) struct Tool {
    /// `server:tool`.
    pub(super) name: String,
    pub(super) definition: Raw,
}

impl Tool {
    /// The tool of this name; `None` if it is not shown, or not known yet.
    pub(super) fn find(link: &Link, name: &str) -> Result<Option<Self>, Failure> {
        #[derive(Deserialize)]
        struct Answer {
            tools: Vec<Tool>,
        }
        // Names of servers may have colons of their own.
        for (at, _) in name.match_indices(':') {
            let path = format!("/api/v1/tools?server={}", escape(&name[..at]));
            match link.get::<Answer>(&path) {
                Ok(Answer { tools }) => {
                    let found = tools.into_iter().find(|tool| tool.name == name);
                    if found.is_some() {
                        return Ok(found);
                    }
                }
                Err(failure) if failure.is_unreachable() => return Err(failure),
                // There is no such server.
                Err(_) => {}
            }
        }
        Ok(None)
    }

    pub(super) fn schema(&self) -> Option<Raw> {
        self.definition.member("inputSchema")
    }

    /// Its parameters, each in a line.
    pub(super) fn shape(&self) -> String {
        let shape = self.schema().map(|schema| shape(&schema, SHAPE_BYTES).text);
        shape.filter(|shape| !shape.is_empty()).map_or_else(
            || "it takes no arguments".to_owned(),
            |shape| visible(&shape),
        )
    }

    fn text(&self, member: &str) -> Option<String> {
        self.definition.member(member)?.to_text()
    }

    /// What it says of how it behaves, in words.
    fn hints(&self) -> Vec<&'static str> {
        let annotations = self.definition.member("annotations");
        let is = |name: &str| {
            let said = annotations.as_ref()?.member(name)?;
            match said.as_str() {
                "true" => Some(true),
                "false" => Some(false),
                _ => None,
            }
        };
        let read_only = is("readOnlyHint") == Some(true);
        [
            read_only.then_some("changes nothing"),
            (!read_only && is("destructiveHint") == Some(true)).then_some("may destroy something"),
            (is("idempotentHint") == Some(true) && !read_only)
                .then_some("can be called again safely"),
            (is("openWorldHint") == Some(true)).then_some("reaches the outside world"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// A call with the parameters that are needed.
    fn example(&self) -> String {
        let mut line = format!("switchboard call {}", shell_word(&self.name));
        let schema = self.schema();
        let required = schema.and_then(|schema| schema.member("required")?.elements());
        let names = required.unwrap_or_default();
        for name in names.iter().filter_map(Raw::to_text).take(EXAMPLE) {
            // Writing to a string cannot fail.
            let _ = write!(line, " {}=VALUE", shell_word(&name));
        }
        visible_line(&line)
    }

    fn page(&self) -> String {
        let mut page = format!("{}\n", visible_line(&self.name));
        if let Some(title) = self.text("title") {
            let _ = writeln!(page, "{}", visible_line(&title));
        }
        if let Some(description) = self.text("description") {
            let _ = writeln!(page, "\n{}", visible(description.trim()));
        }
        let _ = write!(page, "\narguments\n{}", indented(&self.shape()));
        let output = self.definition.member("outputSchema");
        if let Some(output) = output {
            let output = outline(&output, SHAPE_BYTES).text;
            let _ = write!(page, "\nresult\n{}", indented(&visible(&output)));
        }
        let hints = self.hints();
        if !hints.is_empty() {
            let _ = writeln!(page, "\nits server says that it {}", hints.join(", "));
        }
        let _ = writeln!(page, "\nexample\n  {}", self.example());
        page
    }
}

fn indented(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(|line| format!("  {line}")).collect();
    lines.join("\n") + "\n"
}

pub(crate) fn run(home: &Home, args: &Describe) -> Result<(), Failure> {
    let link = Link::need(home)?;
    let Some(tool) = Tool::find(&link, &args.tool)? else {
        return Err(unknown(&link, &args.tool));
    };
    if args.json {
        return print::json_raw(&tool.definition);
    }
    print::data(&tool.page())
}

/// Why there is no such tool, as the gateway says it.
fn unknown(link: &Link, name: &str) -> Failure {
    #[derive(Deserialize)]
    struct Shown {}
    let (server, tool) = name.split_once(':').unwrap_or((name, ""));
    if tool.is_empty() {
        return Failure::usage(format!("`{name}` is not NAME:TOOL"))
            .hint("`switchboard tools` lists all tools by their names");
    }
    // One that is held back is known there.
    let path = format!("/api/v1/trust/{}?tool={}", escape(server), escape(tool));
    match link.get::<Shown>(&path) {
        Ok(_) => {
            let name = shell_word(name);
            Failure::new(format!("`{name}` is held back")).hint(format!(
                "`switchboard trust show {name}` shows what it says"
            ))
        }
        Err(failure) if failure.is_unreachable() => failure,
        Err(_) => Failure::new(format!("there is no tool `{name}`"))
            .hint("`switchboard tools` lists all tools, `switchboard search` finds them"),
    }
}
