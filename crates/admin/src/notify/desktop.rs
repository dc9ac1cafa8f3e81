//! Desktop notifications.
//!
//! Text from servers is data: it is passed in arguments and never through a shell, its markup is escaped, and
//! invisible characters are removed.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use switchboard_client::Raw;
use switchboard_core::approvals::shown::is_seen;
use tokio::process::Command;

/// The most characters that are shown.
const TEXT_MAX: usize = 240;
/// The time limit of the program.
const PATIENCE: Duration = Duration::from_secs(5);
/// Follows a text that does not show everything that is to be decided.
const NOT_ALL: &str = " (shortened)";
const TITLE: &str = "Switchboard is waiting for you";

/// The variables by which the program finds the desktop.
const VARIABLES: [&str; 10] = [
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "HOME",
    "LANG",
    "PATH",
    "USER",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_DATA_DIRS",
    "XDG_RUNTIME_DIR",
];

/// A program that shows notifications.
#[derive(Debug)]
pub(super) enum Desktop {
    /// `notify-send`, for desktops that follow freedesktop.org.
    NotifySend(PathBuf),
    /// `osascript`, on macOS.
    OsaScript(PathBuf),
}

impl Desktop {
    /// Finds the program to use, if there is a desktop.
    pub(super) fn find(env: &impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        if cfg!(target_os = "macos") {
            return on_path(env, "osascript").map(Self::OsaScript);
        }
        let is_set = |name: &&str| env(name).is_some_and(|value| !value.is_empty());
        ["DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS"]
            .iter()
            .find(|name| is_set(name))?;
        on_path(env, "notify-send").map(Self::NotifySend)
    }

    /// The variables that the program receives.
    pub(super) fn variables(
        env: &impl Fn(&str) -> Option<OsString>,
    ) -> Vec<(&'static str, OsString)> {
        let variables = VARIABLES.iter();
        variables
            .filter_map(|name| Some((*name, env(name)?)))
            .collect()
    }

    /// Shows the approval. The program is killed if it takes too long, and reaped in any case.
    pub(super) fn show(
        self,
        approval: &Raw,
        console: Option<&str>,
        variables: Vec<(&'static str, OsString)>,
    ) -> impl Future<Output = ()> + Send + use<> {
        let (program, arguments) = self.command(approval, console);
        async move {
            let child = Command::new(program)
                .args(arguments)
                .env_clear()
                .envs(variables)
                .current_dir("/")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .kill_on_drop(true)
                .spawn();
            let ended = match child {
                Ok(mut child) => match tokio::time::timeout(PATIENCE, child.wait()).await {
                    Ok(ended) => ended.map(|status| status.success()),
                    // Waits for its end, so that no zombie is left.
                    Err(_) => child.kill().await.map(|()| false),
                },
                Err(error) => Err(error),
            };
            match ended {
                Ok(true) => {}
                Ok(false) => tracing::debug!("The desktop does not show notifications."),
                Err(error) => tracing::debug!(%error, "Cannot show a desktop notification."),
            }
        }
    }

    fn command(self, approval: &Raw, console: Option<&str>) -> (PathBuf, Vec<String>) {
        let text = text(approval);
        let link = console.map_or_else(String::new, |console| format!("\n{console}"));
        match self {
            Self::NotifySend(program) => {
                let body = format!("{}{link}", escaped(&text));
                let arguments = [
                    "--app-name=Switchboard",
                    "--urgency=critical",
                    "--",
                    TITLE,
                    &body,
                ];
                (program, arguments.map(str::to_owned).into())
            }
            Self::OsaScript(program) => {
                let body = format!("{text}{link}");
                let script = "display notification (item 2 of argv) with title (item 1 of argv)";
                let arguments = [
                    "-e",
                    "on run argv",
                    "-e",
                    script,
                    "-e",
                    "end run",
                    "--",
                    TITLE,
                    &body,
                ];
                (program, arguments.map(str::to_owned).into())
            }
        }
    }
}

/// The server and its request: one line, bounded, of visible characters.
fn text(approval: &Raw) -> String {
    let member = |name: &str| approval.member(name).and_then(|text| text.to_text());
    let server = member("server").unwrap_or_default();
    let summary = member("summary").unwrap_or_default();
    let all = match (&*server, &*summary) {
        ("", summary) => summary.to_owned(),
        (server, "") => server.to_owned(),
        (server, summary) => format!("{server}: {summary}"),
    };
    let words: Vec<_> = all.split_whitespace().collect();
    let line = words.join(" ");
    let mut seen = line.chars().filter(|character| is_seen(*character));
    let mut text: String = seen.by_ref().take(TEXT_MAX).collect();
    if seen.next().is_some() {
        text.push('…');
    }
    if approval.member("truncated") == Some(Raw::from(true)) {
        text.push_str(NOT_ALL);
    }
    text
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

/// Finds the program in a directory of `PATH`. Relative directories are ignored, because they depend on the
/// directory in which the gateway was started.
fn on_path(env: &impl Fn(&str) -> Option<OsString>, program: &str) -> Option<PathBuf> {
    std::env::split_paths(&env("PATH")?)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program))
        .find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;

    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn text_from_servers_is_data() {
        let raw = |value: Value| Raw::from_value(&value).unwrap();
        let approval = raw(json!({
            "server": "files",
            "summary": "--help <b>\"it's\"</b> & $(reboot)\n\u{1b}[31m\u{202e}evil\u{0}",
        }));
        let desktop = Desktop::NotifySend("/bin/notify-send".into());
        let (_, arguments) = desktop.command(&approval, Some("http://127.0.0.1:1/#approvals/a"));
        assert_eq!(
            arguments,
            [
                "--app-name=Switchboard",
                "--urgency=critical",
                "--",
                TITLE,
                "files: --help &lt;b&gt;&quot;it&#39;s&quot;&lt;/b&gt; &amp; $(reboot) [31mevil\n\
                 http://127.0.0.1:1/#approvals/a",
            ]
        );
        let script = Desktop::OsaScript("/bin/osascript".into());
        let (_, arguments) = script.command(&raw(json!({"summary": "\" & quit"})), None);
        assert_eq!(arguments[6..], ["--", TITLE, "\" & quit"]);
        let long = text(&raw(json!({"summary": "ü".repeat(10_000)})));
        assert_eq!(long.chars().count(), TEXT_MAX + 1);
        assert_eq!(text(&raw(json!(1))), "");
        let cut = raw(json!({"server": "s", "summary": "a", "truncated": true}));
        assert_eq!(text(&cut), "s: a (shortened)");
    }

    #[test]
    #[cfg(not(target_os = "macos"))]
    fn desktop_needs_a_display_and_a_program() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("notify-send");
        std::fs::write(&program, "").unwrap();
        let find = |display: &str, path: &Path| {
            let env = |name: &str| match name {
                "DISPLAY" => Some(display.into()),
                "PATH" => Some(path.as_os_str().to_owned()),
                _ => None,
            };
            Desktop::find(&env).is_some()
        };
        assert!(!find(":0", folder.path()), "not executable");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(find(":0", folder.path()));
        assert!(!find("", folder.path()));
        assert!(!find(":0", Path::new(".")));
        assert!(!find(":0", Path::new("/none")));
    }
}
