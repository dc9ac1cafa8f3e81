//! Hints about the start of a server: its working directory, and variables that it lacks.

use std::path::Path;

use switchboard_config::{Because, CommandLine, Environment, Server, Sharing, Transport, parse};
use switchboard_wire::with_hint;

/// The program as written to the configuration: a path relative to the current directory becomes absolute.
pub(super) fn program(command: &str) -> String {
    if command.contains('/') {
        absolute(command)
    } else {
        command.to_owned()
    }
}

/// A path that stays valid in a gateway that runs elsewhere. A path that begins with a reference is left as
/// it is.
pub(super) fn absolute(path: &str) -> String {
    if path.is_empty() || path.starts_with("${") {
        return path.to_owned();
    }
    let absolute = std::path::absolute(path).ok();
    absolute
        .and_then(|path| path.into_os_string().into_string().ok())
        .unwrap_or_else(|| path.to_owned())
}

/// Hints about a server that was added, given the text of a configuration that contains it.
pub(super) fn hints(config: &str, name: &str) -> Vec<String> {
    let config = parse(config, "").unwrap_or_default();
    let Some(server) = config.servers.get(name) else {
        return Vec::new();
    };
    let mut hints: Vec<_> = sharing(server).into_iter().chain(roots(server)).collect();
    let Transport::Command(line) = &server.transport else {
        return hints;
    };
    let relative = relative_argument(line).map(|arg| {
        format!(
            "`{arg}` is a relative path, and the server runs in its own directory; use the full path, or \
             --cwd DIR"
        )
    });
    let missed = missed(line).map(|(message, fix)| with_hint(message, Some(fix)));
    hints.extend(missed.into_iter().chain(relative));
    hints
}

/// The callers that share an instance, if the gateway chose that.
fn sharing(server: &Server) -> Option<String> {
    let (sharing, because) = server.sharing();
    let whose = match sharing {
        _ if because == Because::Configured => return None,
        Sharing::All => return None,
        Sharing::Project => "each directory that clients work in",
        Sharing::Client => "each client",
    };
    Some(format!(
        "{because}, so {whose} gets an instance of its own; --share sets another way"
    ))
}

/// The directories of a server that prefers those of its callers.
fn roots(server: &Server) -> Option<String> {
    let (sharing, _) = server.sharing();
    let is_replaced = sharing != Sharing::All && server.prefers_roots();
    is_replaced.then(|| {
        "the server works in the roots of its client, or else in its project, instead of the directories in its entry"
            .to_owned()
    })
}

/// Hints about a server that is imported from a client.
pub(super) fn import_notes(server: &Server) -> impl Iterator<Item = String> {
    let line = match &server.transport {
        Transport::Command(line) => Some(line),
        _ => None,
    };
    let relative = line.and_then(relative_place).map(|path| {
        format!("the relative path `{path}` is resolved from the directory of switchboard.json")
    });
    let missed = line.and_then(missed);
    let missed = missed.map(|(message, fix)| with_hint(message, Some(fix)));
    relative.into_iter().chain(missed)
}

/// Variables that are set here, that a server is likely to need, and that it does not get: a message and a
/// hint.
pub(super) fn missed(line: &CommandLine) -> Option<(String, String)> {
    let names = Environment::current(None).missed_by(line);
    if names.is_empty() {
        return None;
    }
    let (verb, pronoun) = match names.len() {
        1 => ("is", "it"),
        _ => ("are", "them"),
    };
    let quoted: Vec<_> = names.iter().map(|name| format!("\"{name}\"")).collect();
    let list = names.join(", ");
    let add = quoted.join(", ");
    Some((
        format!("{list} {verb} set here but not passed to the server"),
        format!("if the server needs {pronoun}, add \"inheritEnv\": [{add}]"),
    ))
}

/// Tests if a program or a directory is a relative path.
pub(super) fn is_relative(path: &str) -> bool {
    path.contains('/') && !path.starts_with(['/', '$'])
}

/// The working directory or, without one, the program, if it is a relative path.
pub(super) fn relative_place(line: &CommandLine) -> Option<&str> {
    let path = line.cwd.as_deref().unwrap_or(&line.command);
    is_relative(path).then_some(path)
}

/// An argument that is a relative path, or names a file in the current directory.
pub(super) fn relative_argument(line: &CommandLine) -> Option<&str> {
    let args = line.args.iter().map(String::as_str);
    let mut relative = args.filter(|arg| !arg.is_empty() && !arg.starts_with(['/', '-']));
    let has_dots = |arg: &str| matches!(arg.split('/').next(), Some("." | ".."));
    match line.cwd {
        Some(_) => None,
        None => relative.find(|arg| has_dots(arg) || Path::new(arg).exists()),
    }
}
