//! `switchboard approvals rules`, `forget` and `test`: the rules that decide which calls need approval.

use std::fmt::Write as _;

use clap::Args;
use serde_json::{Value, json};
use switchboard_catalog::escape;
use switchboard_config::Home;
use switchboard_rest::rules::{PastCalls, Rule, Rules, TestedRule};
use switchboard_terminal::{
    error::Error,
    print::{self, Table},
    visible::visible_line,
};
use switchboard_wire::Raw;

use crate::{link::Link, status, times::local, words::count};

/// Show all rules and remembered decisions.
///
/// Rules come from the configuration and from the entries of servers. Rules that deny come first, then rules
/// that ask, then rules that allow; within each group, more specific rules come first.
#[derive(Debug, Args)]
pub(super) struct List {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Forget a remembered decision
#[derive(Debug, Args)]
pub(super) struct Forget {
    /// Rule ID, as shown by `switchboard approvals rules` (a prefix is enough)
    #[arg(value_name = "RULE-ID")]
    id: String,
}

/// Test a rule before you add it to the configuration.
///
/// Shows which tools, prompts and resources the rule matches, and which recent calls it would have matched.
/// Nothing is changed.
#[derive(Debug, Args)]
pub(super) struct Test {
    /// Rule as written in the configuration: 'ask files:delete_*', or a JSON object
    rule: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const RULES: &str = "/api/v1/approvals/rules";

pub(super) fn list(home: &Home, args: &List) -> Result<(), Error> {
    let link = Link::need(home)?;
    if args.json {
        return print::json_raw(&link.get(RULES)?);
    }
    let Rules { rules } = link.get(RULES)?;
    status::mention_kept_configuration(&link)?;
    if rules.is_empty() {
        print::say(
            "there are no rules: only questions and sampling requests from servers need your answer",
        );
        print::hint(
            "add rules to `approvals.rules` in the configuration; `switchboard approvals test 'ask files:delete_*'` shows what a rule matches",
        );
        return Ok(());
    }
    let mut table = Table::new(&["RULE", "ID", "SOURCE", "SCOPE", "EXPIRES", "BY"]);
    for rule in &rules {
        table.row([
            visible_line(&rule.text),
            visible_line(&rule.id),
            visible_line(&rule.source),
            rule.scope.as_ref().map(scope).unwrap_or_default(),
            rule.expires_at.as_deref().map(local).unwrap_or_default(),
            rule.by.as_deref().map(visible_line).unwrap_or_default(),
        ]);
    }
    table.print()?;
    if let Some(rule) = rules.iter().find(|rule| rule.source == "remembered") {
        print::hint(&format!(
            "`switchboard approvals forget {}` forgets a remembered decision",
            print::shell_word(&rule.id)
        ));
    }
    Ok(())
}

/// The scope of a remembered decision: a word, or a word and a folder.
fn scope(scope: &Raw) -> String {
    if let Some(word) = scope.to_text() {
        return visible_line(&word);
    }
    let members = scope.members().unwrap_or_default();
    let parts = members.iter().map(|(name, value)| match value.to_text() {
        Some(folder) => format!("{name} {folder}"),
        None => name.clone(),
    });
    visible_line(&parts.collect::<Vec<_>>().join(" "))
}

pub(super) fn forget(home: &Home, args: &Forget) -> Result<(), Error> {
    let link = Link::need(home)?;
    let Rules { rules } = link.get(RULES)?;
    let remembered = rules.iter().filter(|rule| rule.source == "remembered");
    let found: Vec<&Rule> = remembered
        .filter(|rule| rule.id == args.id || rule.id.starts_with(&args.id))
        .collect();
    let exact = found.iter().find(|rule| rule.id == args.id);
    let id = match (exact, found.as_slice()) {
        (Some(rule), _) | (None, [rule]) if !args.id.is_empty() => &rule.id,
        // The gateway reports the error.
        (None, []) => &args.id,
        _ => {
            let list: Vec<String> = found
                .iter()
                .map(|rule| format!("  {}  {}", visible_line(&rule.id), visible_line(&rule.text)))
                .collect();
            let message = format!(
                "the IDs of {} begin with {:?}:\n{}",
                count(found.len() as u64, "rule", "rules"),
                args.id,
                list.join("\n")
            );
            return Err(Error::new(message).hint("use more characters of the ID"));
        }
    };
    link.delete(&format!("{RULES}/{}", escape(id)))?;
    print::say(&format!("forgot `{}`", visible_line(id)));
    Ok(())
}

pub(super) fn test(home: &Home, args: &Test) -> Result<(), Error> {
    let rule: Value = if args.rule.trim_start().starts_with('{') {
        serde_json::from_str(&args.rule)
            .map_err(|error| Error::usage(format!("the rule is not valid JSON: {error}")))?
    } else {
        Value::String(args.rule.clone())
    };
    let link = Link::need(home)?;
    let body = json!({ "rule": rule }).to_string();
    let address = format!("{RULES}/test");
    if args.json {
        return print::json_raw(&link.send(&address, &body)?);
    }
    let tested: TestedRule = link.send(&address, &body)?;
    print::data(&format!("{}\n", visible_line(&tested.text)))?;
    if tested.tools.is_empty() {
        print::data("\nthe rule matches no known tool, prompt or resource\n")?;
    } else {
        print::data("\n")?;
        let mut table = Table::new(&["NAME", "KIND", "NOW", "WITH RULE"]);
        for tool in &tested.tools {
            table.row([
                visible_line(&tool.name),
                visible_line(&tool.kind),
                visible_line(&tool.now),
                visible_line(&tool.then),
            ]);
        }
        table.print()?;
    }
    past(
        &tested.calls,
        "call",
        "calls",
        "their arguments were not stored",
    )?;
    past(
        &tested.approvals,
        "request",
        "requests",
        "their arguments were not stored in full",
    )
}

/// Prints the recent calls that the rule matches.
fn past(calls: &PastCalls, one: &str, more: &str, unsure: &str) -> Result<(), Error> {
    if calls.looked == 0 {
        return Ok(());
    }
    let mut said = format!(
        "\nthe rule matches {} of the last {}",
        calls.matched,
        count(calls.looked, one, more)
    );
    if calls.unsure > 0 {
        // Writing to a string cannot fail.
        let _ = write!(said, ", and perhaps {} more: {unsure}", calls.unsure);
    }
    print::data(&format!("{said}\n"))?;
    if calls.examples.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&["TIME", "TOOL", "CLIENT", "ARGUMENTS"]);
    for example in &calls.examples {
        table.row([
            local(&example.at),
            visible_line(&format!("{}:{}", example.server, example.tool)),
            example
                .client
                .as_deref()
                .map(visible_line)
                .unwrap_or_default(),
            example
                .arguments
                .as_ref()
                .map(|arguments| visible_line(arguments.as_str()))
                .unwrap_or_default(),
        ]);
    }
    table.print()
}
