//! `switchboard doctor`: checks everything that can be wrong, and prints a fix for each problem.
//!
//! It changes nothing, and every wait is bounded: a program or an address that does not respond is a finding,
//! not a reason to hang.

mod gateway;
mod place;
mod profiles;
mod program;
mod servers;
mod tokens;

use std::{fmt::Write as _, io};

use clap::Args;
use serde::Serialize;
use serde_json::json;
use switchboard_config::Home;
use switchboard_terminal::{
    error::Error,
    print::{self, Colour},
};

use super::words;

/// Check for problems and suggest fixes.
///
/// Checks the gateway's directories, its configuration, its port, the running gateway and every enabled server.
/// Changes nothing. The exit code is 1 if there is a problem.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The result of one check.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    /// The subject of the check, such as `config` or `server:files`.
    check: String,
    state: State,
    message: String,
    /// The advice for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    /// It works, but the user may want to know.
    Warning,
    Problem,
}

impl Finding {
    fn ok(check: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            check: check.into(),
            state: State::Ok,
            message: scrubbed(message),
            fix: None,
        }
    }

    fn warning(
        check: impl Into<String>,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            state: State::Warning,
            fix: Some(scrubbed(fix)),
            ..Self::ok(check, message)
        }
    }

    fn problem(
        check: impl Into<String>,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            state: State::Problem,
            fix: Some(scrubbed(fix)),
            ..Self::ok(check, message)
        }
    }

    fn is_problem(&self) -> bool {
        self.state == State::Problem
    }

    /// The message and the advice of an error.
    fn of(check: impl Into<String>, failure: &Error) -> Self {
        let fix = failure.advice().unwrap_or("see the documentation");
        Self::problem(check, failure.message(), fix)
    }
}

/// A secret may be part of the folder or the program of a server.
fn scrubbed(text: impl Into<String>) -> String {
    switchboard_base::scrub::text(&text.into()).into_owned()
}

/// Runs the command.
pub fn run(home: &Home, args: &Doctor) -> Result<(), Error> {
    let gateway = gateway::Gateway::look(home);
    let mut findings = place::look(home, gateway.is_running());
    let config = gateway.check(home, &mut findings);
    if let Some(config) = config {
        findings.extend(profiles::look(&config, gateway.tools()));
        findings.extend(tokens::look(home, &config));
        findings.extend(servers::look(home, &config, gateway.status()));
    }
    let problems = count(&findings, State::Problem);
    if args.json {
        print::json(&json!({"problems": problems, "checks": findings}))?;
    } else {
        for finding in &findings {
            show(finding)?;
        }
        let problems = match problems {
            0 => "no problems".to_owned(),
            some => words::count(some as u64, "problem", "problems"),
        };
        print::say(&match count(&findings, State::Warning) as u64 {
            0 => problems,
            some => format!("{problems}, {}", words::count(some, "warning", "warnings")),
        });
    }
    match problems {
        0 => Ok(()),
        _ => Err(Error::reported()),
    }
}

fn count(findings: &[Finding], state: State) -> usize {
    findings.iter().filter(|found| found.state == state).count()
}

/// The indentation of further lines of a finding.
const INDENT: &str = "           ";

fn show(finding: &Finding) -> Result<(), Error> {
    let (word, colour) = match finding.state {
        State::Ok => ("ok     ", Colour::Green),
        State::Warning => ("warning", Colour::Yellow),
        State::Problem => ("problem", Colour::Red),
    };
    let word = print::paint(&io::stdout(), colour, word);
    let check = format!("{}: ", print::one_line(&finding.check));
    let fits = |text: &str, taken: usize| {
        let text = print::clean(text);
        let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
        let mut lines = vec![print::fitted(&io::stdout(), first, taken, INDENT.len())];
        let rest = rest.lines().map(|line| format!("{INDENT}{line}"));
        lines.extend(rest.map(|line| print::fitted(&io::stdout(), &line, 0, 0)));
        lines.join("\n")
    };
    let message = fits(&finding.message, 9 + check.chars().count());
    let mut text = format!("{word}  {check}{message}\n");
    if let Some(fix) = &finding.fix {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{INDENT}hint: {}", fits(fix, INDENT.len() + 6));
    }
    print::data(&text)
}
