//! The servers that a client has for one project only.

use std::{iter::once, path::Path};

use serde_json::Value;
use switchboard_client_configs::{Dirs, Found};
use switchboard_config::{CommandLine, Placeholder, Server, Share, Transport};

use crate::{import::alone, launching::is_relative};

/// Adapts the servers of single projects to the gateway, which has them for all projects.
pub(super) fn share(found: &mut Found, dirs: &Dirs) {
    found.share_in_projects(dirs, &is_bound);
}

/// Tests if an entry, which has `${project}` in place of the path of its project, is for that project only: in another
/// one, it might run the code of others.
fn is_bound(project: &str, entry: &Value) -> bool {
    const NAME: &str = "server";
    let config = alone(NAME, entry);
    let transport = config.servers.get(NAME).map(|server| &server.transport);
    match transport {
        Some(Transport::Command(line)) => uses_files(Path::new(project), line) || runs_code(line),
        _ => false,
    }
}

const PROJECT: &str = Placeholder::Project.as_str();

fn is_in_project(text: &str) -> bool {
    text.contains(PROJECT)
}

/// Tests if a command line names anything in the project but a directory.
fn uses_files(project: &Path, line: &CommandLine) -> bool {
    let real = |text: &str| text.replace(PROJECT, &project.to_string_lossy());
    let dir = project.join(line.cwd.as_deref().map(real).unwrap_or_default());
    let is_file = |arg: &String| {
        let path = arg.split_once('=').map_or(&**arg, |(_, value)| value);
        let is_relative = Path::new(path).is_relative() && dir.join(path).is_file();
        let at = arg.find(PROJECT).map(|at| real(&arg[at..]));
        at.map_or(is_relative, |path| !Path::new(&path).is_dir())
    };
    is_in_project(&line.command)
        || is_relative(&line.command)
        || line.args.iter().any(is_file)
        // A variable may name code, as PYTHONPATH does.
        || line.env.values().any(|value| is_in_project(value))
}

/// Programs that run a package by its name, with the arguments after the name.
const PACKAGE_RUNNERS: [&str; 4] = ["npx", "uvx", "bunx", "pnpx"];

/// Tests if a command line may run code in a directory of the project.
fn runs_code(line: &CommandLine) -> bool {
    let plain = line.args.iter().filter(|arg| !arg.contains("${"));
    let words = once(&line.command).chain(plain);
    let runners = words.filter(|word| is_runner(word)).count();
    let harmless = usize::from(line.cwd.is_none() && is_package(line));
    let mut given = line.args.iter().chain(&line.cwd);
    runners > harmless && given.any(|text| is_in_project(text))
}

/// Tests if a command line runs a package, so that all arguments in the project are for that package.
fn is_package(line: &CommandLine) -> bool {
    let program = line.command.rsplit('/').next().unwrap_or_default();
    let is_flag = |arg: &&String| ["-y", "--yes"].contains(&arg.as_str());
    let package = line.args.iter().find(|arg| !is_flag(arg));
    PACKAGE_RUNNERS.contains(&program)
        && package.is_some_and(|package| !package.starts_with(['-', '.', '/', '~', '$']))
}

/// Tests if a program runs code from directories: the gateway does not start it in a project.
fn is_runner(program: &str) -> bool {
    let line = CommandLine {
        command: program.to_owned(),
        ..CommandLine::default()
    };
    let server = Server {
        share: Share::Project,
        ..Server::new(Transport::Command(line))
    };
    !server.runs_in_project()
}
