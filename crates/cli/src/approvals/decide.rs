//! `switchboard approvals approve` and `reject`. Only the request that was shown is approved.

use clap::{Args, ValueEnum};
use switchboard_approvals::form::{Form, Mode};
use switchboard_config::Home;
use switchboard_rest::approvals::Approval;
use switchboard_terminal::{error::Error, print, visible::visible_line};
use switchboard_wire::Raw;

use super::{edit, fill, show::Sight, words};
use crate::{agree::APPROVE, link::Link};

/// Approve a request, optionally with changes.
///
/// Shows the request and asks for confirmation. A question is answered with --content or --field, or field by
/// field on a terminal.
#[derive(Debug, Args)]
pub(super) struct Approve {
    /// Request ID (a prefix is enough)
    id: String,
    /// Edit the request in $VISUAL or $EDITOR first; the changes are shown before they are sent
    #[arg(long, conflicts_with_all = ["arguments", "model", "max_tokens"])]
    edit: bool,
    /// Replacement arguments for the call, as a JSON object
    #[arg(long, value_name = "JSON")]
    arguments: Option<String>,
    /// Model to use, one of the configured models
    #[arg(long)]
    model: Option<String>,
    /// Maximum number of tokens in the model's answer
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,
    /// Answer to a question, as a JSON object
    #[arg(long, value_name = "JSON", conflicts_with = "field")]
    content: Option<String>,
    /// Answer to one field of a question; can be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    field: Vec<String>,
    #[command(flatten)]
    remember: Remember,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

impl Approve {
    /// Approves the request unchanged, after the user confirms.
    pub(super) fn asking(id: String) -> Self {
        Self {
            id,
            edit: false,
            arguments: None,
            model: None,
            max_tokens: None,
            content: None,
            field: Vec::new(),
            remember: Remember::default(),
            yes: false,
        }
    }

    /// Fails if an option does not apply to this kind of request.
    fn misplaced(&self, approval: &Approval) -> Result<(), Error> {
        let is = |kind: &str| approval.kind == kind;
        let is_request = is("sampling") && !approval.is_review();
        let can_change = is("sampling") || is("tool_call");
        let call = "tool calls";
        let model = "sampling requests";
        let either = "tool calls and sampling requests";
        for (given, fits, flag, with) in [
            (
                self.arguments.is_some(),
                is("tool_call"),
                "--arguments",
                call,
            ),
            (self.model.is_some(), is_request, "--model", model),
            (self.max_tokens.is_some(), is_request, "--max-tokens", model),
            (
                self.content.is_some(),
                is("elicitation"),
                "--content",
                "questions",
            ),
            (
                !self.field.is_empty(),
                is("elicitation"),
                "--field",
                "questions",
            ),
            (self.edit, can_change, "--edit", either),
            (
                self.remember.scope.is_some(),
                can_change,
                "--remember",
                either,
            ),
        ] {
            if given && !fits {
                let message = format!(
                    "{flag} applies only to {with}, and `{}` is {}",
                    approval.id,
                    words::described(approval)
                );
                let hint = format!("run the command without {flag}");
                return Err(Error::usage(message).hint(hint));
            }
        }
        Ok(())
    }
}

/// Reject a request.
///
/// The caller receives the reason. Rejecting a question declines it.
#[derive(Debug, Args)]
pub(super) struct Reject {
    /// Request ID (a prefix is enough)
    id: String,
    /// Reason, which the caller receives
    reason: Option<String>,
    #[command(flatten)]
    remember: Remember,
}

/// The options for remembering a decision.
#[derive(Debug, Default, Args)]
struct Remember {
    /// Scope in which to remember the decision
    #[arg(long = "remember", value_name = "SCOPE")]
    scope: Option<Scope>,
    /// Only these exact arguments (with --remember)
    #[arg(long, requires = "scope")]
    exact: bool,
    /// Duration of a remembered decision, such as 30m, 2h or 7d
    #[arg(long = "for", value_name = "DURATION", requires = "scope", value_parser = crate::times::seconds)]
    time: Option<u64>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Scope {
    /// This client until it disconnects
    Session,
    /// Clients in the same directory
    Project,
    /// All clients
    Always,
}

impl Scope {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Project => "project",
            Self::Always => "always",
        }
    }
}

impl Remember {
    /// Fails if a decision cannot be remembered in this way, before the user is asked for one.
    fn check(&self, approval: &Approval) -> Result<(), Error> {
        let Some(scope) = self.scope.map(Scope::as_str) else {
            return Ok(());
        };
        let can = &approval.rememberable;
        if can.iter().any(|known| *known == scope) {
            return Ok(());
        }
        let why = match scope {
            "session" => "the caller has no lasting session",
            "project" => "the client's project directory is unknown",
            _ => {
                "only decisions about tool calls, resources, prompts and sampling can be remembered"
            }
        };
        let failure = Error::usage(format!("cannot remember this decision: {why}"));
        let can: Vec<&str> = can.iter().map(|scope| &**scope).collect();
        Err(if can.is_empty() {
            failure.hint("omit --remember")
        } else {
            failure.hint(format!("use --remember {}", can.join(" or ")))
        })
    }

    /// Reports that the decision is remembered, and how to forget it.
    fn told(&self, approval: &Approval) {
        if self.scope.is_none() {
            return;
        }
        let with = if self.exact {
            "exactly these arguments"
        } else {
            "any arguments (with --exact, only these)"
        };
        let rule = print::shell_word(&format!("r-{}", approval.id));
        print::say(&format!(
            "remembered for {} with {with}",
            words::place(approval)
        ));
        print::hint(&format!("`switchboard approvals forget {rule}` forgets it"));
    }

    fn body(&self) -> Option<(&'static str, Raw)> {
        let scope = self.scope?.as_str();
        let arguments = if self.exact { "exact" } else { "any" };
        let mut members = vec![
            ("scope", Raw::string(scope)),
            ("arguments", Raw::string(arguments)),
        ];
        members.extend(
            self.time
                .map(|time| ("expiresInSeconds", Raw::number(time))),
        );
        Some(("remember", Raw::object(members)))
    }
}

pub(super) fn approve(home: &Home, args: &Approve) -> Result<(), Error> {
    let link = Link::need(home)?;
    let id = super::find(&link, &args.id)?;
    let approval: Approval = super::ask(&link, &id)?;
    if !approval.waits() {
        return Err(over(&approval));
    }
    args.misplaced(&approval)?;
    args.remember.check(&approval)?;
    if approval.kind == "elicitation" {
        return accept(&link, &approval, args);
    }
    let edits = edits(home, &approval, args)?;
    let sight = Sight::of(&link, &approval, true);
    if !args.yes {
        print::data(&sight.text)?;
    }
    sight.check(&approval)?;
    if let Some(edits) = edits.as_ref().filter(|_| !args.yes) {
        edits.show()?;
    }
    let what = match (&*approval.kind, approval.is_review()) {
        ("tool_call", _) => format!("Allow the call to {}", words::place(&approval)),
        ("resource", _) => format!("Allow reading {}", words::place(&approval)),
        ("prompt", _) => format!("Allow the prompt {}", words::place(&approval)),
        ("sampling", true) => format!("Send this answer to {}", words::server(&approval)),
        ("sampling", false) => format!(
            "Send this request from {} to the model",
            words::server(&approval)
        ),
        _ => format!("Approve {}", words::place(&approval)),
    };
    let with = edits.as_ref().map_or("", |_| ", with your changes");
    APPROVE.agree(args.yes, &format!("{what}{with} ({id})?"))?;
    let mut members: Vec<_> = args.remember.body().into_iter().collect();
    members.extend(edits.map(|edits| ("edits", edits.body)));
    // Meanwhile another approver may have sent the request to the model. Then the model's answer is pending,
    // which this user has not seen.
    members.push(("seen", Raw::string(&approval.status)));
    let decided = super::send(&link, &id, "approve", members)?;
    if approval.status == "orphaned" {
        print::say(&format!(
            "approved `{id}`: the caller has disconnected, so nothing happens now"
        ));
        print::hint("the approval applies if the caller repeats the request soon");
    } else {
        told(&decided);
    }
    args.remember.told(&approval);
    Ok(())
}

/// The changes to a request, and the diff that the user sees.
pub(super) struct Edits {
    pub(super) body: Raw,
    pub(super) diff: String,
}

impl Edits {
    fn show(&self) -> Result<(), Error> {
        print::data("\nyour changes\n")?;
        print::difference(&self.diff)
    }
}

fn edits(home: &Home, approval: &Approval, args: &Approve) -> Result<Option<Edits>, Error> {
    if args.edit {
        return edit::run(home, approval);
    }
    if let Some(arguments) = &args.arguments {
        let arguments = object(arguments, "the arguments")?;
        return Ok(edit::arguments(approval, &arguments));
    }
    let mut members = Vec::new();
    members.extend(
        args.model
            .as_deref()
            .map(|model| ("model", Raw::string(model))),
    );
    members.extend(args.max_tokens.map(|most| ("maxTokens", Raw::number(most))));
    Ok((!members.is_empty()).then(|| edit::members(approval, members)))
}

/// Parses a JSON object that was given on the command line.
pub(super) fn object(given: &str, what: &str) -> Result<Raw, Error> {
    let hint = r#"pass an object such as '{"path": "/tmp"}'"#;
    let raw = Raw::parse(given.to_owned())
        .map_err(|error| Error::usage(format!("{what} are not valid JSON: {error}")).hint(hint))?;
    if raw.is_object() {
        Ok(raw)
    } else {
        Err(Error::usage(format!("{what} are not a JSON object")).hint(hint))
    }
}

/// Answers a question.
fn accept(link: &Link, approval: &Approval, args: &Approve) -> Result<(), Error> {
    let form = Form::read(&words::request(approval));
    if !args.yes {
        print::data(&Sight::of(link, approval, true).text)?;
    }
    let id = &approval.id;
    let server = words::server(approval);
    let content = match &form.mode {
        Mode::Refused { why } => {
            return Err(Error::new(visible_line(why)).hint(format!(
                "`switchboard approvals respond {id} --decline` declines it"
            )));
        }
        Mode::Url(address) => {
            let host = visible_line(&address.host);
            if args.yes {
                print::say(&format!(
                    "Switchboard does not open the address: {}",
                    visible_line(&address.url)
                ));
                print::say(&format!("the host is {host}"));
            }
            let question = format!("Tell {server} that you agree to open {host} ({id})?");
            APPROVE.agree(args.yes, &question)?;
            None
        }
        Mode::Form { .. } | Mode::Raw { .. } => {
            let content = fill::content(&form, args.content.as_deref(), &args.field, args.yes)?;
            if !args.yes {
                let shown = switchboard_terminal::visible::pretty(&content);
                print::data(&format!("\nyour answer\n{shown}\n"))?;
            }
            APPROVE.agree(args.yes, &format!("Send this to {server} ({id})?"))?;
            Some(("content", content))
        }
    };
    let members = [("action", Raw::string("accept"))]
        .into_iter()
        .chain(content);
    told(&super::send(link, id, "respond", members.collect())?);
    Ok(())
}

pub(super) fn reject(home: &Home, args: &Reject) -> Result<(), Error> {
    let link = Link::need(home)?;
    let id = super::find(&link, &args.id)?;
    reject_one(&link, &id, args.reason.as_deref(), &args.remember)
}

/// Rejects a request without remembering the decision.
pub(super) fn refuse(link: &Link, id: &str, reason: Option<&str>) -> Result<(), Error> {
    reject_one(link, id, reason, &Remember::default())
}

fn reject_one(
    link: &Link,
    id: &str,
    reason: Option<&str>,
    remember: &Remember,
) -> Result<(), Error> {
    let mut members: Vec<_> = remember.body().into_iter().collect();
    members.extend(reason.map(|reason| ("reason", Raw::string(reason))));
    let decided = super::send(link, id, "reject", members)?;
    told(&decided);
    remember.told(&decided);
    Ok(())
}

/// The error for a request that was decided or timed out before.
pub(super) fn over(approval: &Approval) -> Error {
    let id = print::shell_word(&approval.id);
    let message = match &approval.decision {
        Some(decision) => format!("`{id}` was already {}", words::decision(decision)),
        None => format!("`{id}` is already {}", words::status(approval)),
    };
    Error::new(message).hint(format!(
        "`switchboard approvals show {id}` shows its outcome"
    ))
}

/// Reports the outcome of a decision.
pub(super) fn told(approval: &Approval) {
    let id = &approval.id;
    let place = words::place(approval);
    print::say(&match (&*approval.kind, &*approval.status) {
        ("sampling", "generating") => format!("approved `{id}`: the model is answering"),
        ("sampling", "approved") => format!("approved `{id}`: `{place}` receives this answer"),
        ("tool_call", "approved") => format!("approved `{id}`: calling `{place}`"),
        ("tool_call", "rejected") => format!("rejected `{id}`: `{place}` was not called"),
        ("resource", "approved") => format!("approved `{id}`: reading `{place}`"),
        ("resource", "rejected") => format!("rejected `{id}`: `{place}` was not read"),
        ("prompt", "approved") => format!("approved `{id}`: returning `{place}`"),
        ("prompt", "rejected") => format!("rejected `{id}`: `{place}` was not returned"),
        (_, status) => format!("{} `{id}`", visible_line(status).replace('_', " ")),
    });
    if approval.kind == "sampling" && approval.status == "generating" {
        print::hint(&format!(
            "`switchboard approvals show {id}` shows its answer"
        ));
    }
}
