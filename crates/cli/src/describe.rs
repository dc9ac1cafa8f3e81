//! `switchboard describe`: one tool and its parameters; and the lookup of tools by name for other commands.

use std::{fmt::Write as _, io};

use clap::Args;
use switchboard_base::project::project_dir;
use switchboard_catalog::escape;
use switchboard_config::Home;
use switchboard_rest::tools::{Overridden, Tool, Tools};
use switchboard_schema::outline;
use switchboard_terminal::visible::{visible, visible_line};
use switchboard_terminal::{
    error::Error,
    print::{self, shell_word},
};
use switchboard_wire::Raw;

use super::call;
use crate::link::Link;

/// Show the description and the parameters of a tool
#[derive(Debug, Args)]
pub struct Describe {
    /// Tool, as shown by `switchboard tools`
    #[arg(value_name = "SERVER:TOOL")]
    tool: String,
    /// Print the definition that clients see
    #[arg(long)]
    json: bool,
}

/// The longest description of the parameters, in bytes.
const SHAPE_BYTES: usize = 16 * 1024;
/// The most parameters in an example.
const EXAMPLE: usize = 4;

/// The tool with this name, or the error that it does not exist.
pub(super) fn find(link: &Link, name: &str) -> Result<Tool, Error> {
    let path = format!("/api/v1/tools?name={}{}", escape(name), in_project());
    let Tools { tools, .. } = link.get(&path)?;
    let gone =
        || Error::new(format!("`{name}` is no longer available")).hint("run the command again");
    tools.into_iter().next().ok_or_else(gone)
}

/// The parameter of a request that names the directory that the user works in, if that is a project.
pub(super) fn in_project() -> String {
    let project = project().map(|project| format!("&project={}", escape(&project)));
    project.unwrap_or_default()
}

/// The directory that the user works in, if that is a project.
pub(super) fn project() -> Option<String> {
    project_dir(&std::env::current_dir().ok()?)
}

pub(super) fn schema(tool: &Tool) -> Option<Raw> {
    tool.definition.member("inputSchema")
}

/// The parameters, one per line.
pub(super) fn shape(tool: &Tool) -> String {
    let shape = schema(tool).map(|schema| switchboard_schema::shape(&schema, SHAPE_BYTES).text);
    shape
        .filter(|shape| !shape.is_empty())
        .map_or_else(|| "none".to_owned(), |shape| visible(&shape))
}

fn text(tool: &Tool, member: &str) -> Option<String> {
    tool.definition.member(member)?.to_text()
}

/// The annotations of the tool, in words.
fn hints(tool: &Tool) -> Vec<&'static str> {
    let annotations = tool.definition.member("annotations");
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
        (!read_only && is("destructiveHint") == Some(true))
            .then_some("may delete or overwrite data"),
        (is("idempotentHint") == Some(true) && !read_only).then_some("can be repeated safely"),
        (is("openWorldHint") == Some(true)).then_some("accesses external systems"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A call with the required parameters.
fn example(tool: &Tool) -> String {
    let mut line = format!("switchboard call {}", shell_word(&tool.name));
    let schema = schema(tool);
    let required = schema.and_then(|schema| schema.member("required")?.elements());
    let names = required.unwrap_or_default();
    for name in names.iter().filter_map(Raw::to_text).take(EXAMPLE) {
        // Writing to a string cannot fail.
        let _ = write!(line, " {}=VALUE", shell_word(&name));
    }
    visible_line(&line)
}

fn page(tool: &Tool) -> String {
    let mut page = format!("{}\n", visible_line(&tool.name));
    if let Some(title) = text(tool, "title") {
        let _ = writeln!(page, "{}", visible_line(&title));
    }
    if let Some(description) = text(tool, "description") {
        let description = visible(description.trim());
        let description = print::fitted(&io::stdout(), &description, 0, 0);
        let _ = writeln!(page, "\n{description}");
    }
    let _ = write!(page, "\narguments\n{}", indented(&shape(tool)));
    let output = tool.definition.member("outputSchema");
    if let Some(output) = output {
        let output = outline(&output, SHAPE_BYTES).text;
        let _ = write!(page, "\nresult\n{}", indented(&visible(&output)));
    }
    let hints = hints(tool);
    if !hints.is_empty() {
        let _ = writeln!(
            page,
            "\naccording to its {}, the tool {}",
            if tool.overridden.is_some() {
                "definition"
            } else {
                "server"
            },
            hints.join(", ")
        );
    }
    if let Some(overridden) = &tool.overridden {
        let changes = indented(&changes(tool, overridden));
        let _ = write!(
            page,
            "\noverride\n{}",
            print::fitted(&io::stdout(), &changes, 0, 2)
        );
    }
    let _ = writeln!(page, "\nexample\n  {}", example(tool));
    page
}

/// The effect of an override, next to what the server sent.
fn changes(tool: &Tool, overridden: &Overridden) -> String {
    let own = |member: &str| overridden.definition.member(member);
    let mut lines = vec![format!("name at the server: {}", visible_line(&tool.tool))];
    if own("description") != tool.definition.member("description") {
        let own = own("description").and_then(|own| own.to_text());
        let own = own.map_or_else(|| "none".to_owned(), |own| visible(own.trim()));
        lines.push("description at the server:".to_owned());
        lines.extend(own.lines().map(|line| format!("  {line}")));
    }
    if own("annotations") != tool.definition.member("annotations") {
        let own = own("annotations").map_or_else(|| "none".to_owned(), |own| own.to_string());
        lines.push(format!("annotations at the server: {}", visible_line(&own)));
    }
    for (name, value) in overridden.fixed.members().unwrap_or_default() {
        let line = format!("fixed argument: {name} = {}", value.as_str());
        lines.push(visible_line(&line));
    }
    for name in &overridden.hidden {
        lines.push(format!("hidden argument: {}", visible_line(name)));
    }
    lines.join("\n")
}

fn indented(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(|line| format!("  {line}")).collect();
    lines.join("\n") + "\n"
}

/// Runs the command.
pub fn run(home: &Home, args: &Describe) -> Result<(), Error> {
    let link = Link::need(home)?;
    let tool = call::patiently(|| find(&link, &args.tool))?;
    if args.json {
        return print::json_raw(&tool.definition);
    }
    print::data(&page(&tool))
}
