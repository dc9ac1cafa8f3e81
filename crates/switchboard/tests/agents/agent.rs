//! The agents: their installation and configuration, and how a test runs them.

use std::{
    env, fs,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::{Value, json};
use switchboard_test_support::{Home, Tools, left_out::Suite, until};
use tempfile::TempDir;

use crate::{
    dialect::Dialect,
    model::{Model, Turn},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agent {
    ClaudeCode,
    Codex,
    OpenCode,
    GeminiCli,
}

impl Agent {
    /// The name of the client in `switchboard connect`.
    fn client(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::OpenCode => "opencode",
            Self::GeminiCli => "gemini",
        }
    }

    fn dialect(self) -> Dialect {
        match self {
            Self::ClaudeCode => Dialect::Messages,
            Self::Codex => Dialect::Responses,
            Self::OpenCode => Dialect::Chat,
            Self::GeminiCli => Dialect::Generate,
        }
    }

    /// The path of the program; `None` if the test is skipped.
    pub(crate) fn find(self) -> Option<PathBuf> {
        if !Suite::Agents.is_wanted() {
            return None;
        }
        let arch = env::consts::ARCH;
        let (system, plain) = match arch {
            "aarch64" => ("linux-arm64", "linux-arm64"),
            // A build that runs on every processor.
            _ => ("linux-x64", "linux-x64-baseline"),
        };
        let program = match self {
            Self::ClaudeCode => format!("@anthropic-ai/claude-code-{system}/claude"),
            Self::Codex => {
                format!("@openai/codex-{system}/vendor/{arch}-unknown-linux-musl/bin/codex")
            }
            Self::OpenCode => format!("opencode-{plain}/bin/opencode"),
            Self::GeminiCli => "@google/gemini-cli/bundle/gemini.js".to_owned(),
        };
        let program = format!("agents/node_modules/{program}");
        Tools::need(&[&program]).map(|tools| tools.path(&program))
    }

    /// Writes the user's configuration from before the gateway is connected.
    fn configure(self, place: &Path, model: &str) {
        let write = |name: &str, text: String| {
            let file = place.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        match self {
            Self::ClaudeCode => {
                let answer = json!({ "hookSpecificOutput": {
                    "hookEventName": "Elicitation",
                    "action": "accept",
                    "content": { "username": "ada", "email": "ada@example.org" },
                } });
                write("answer.json", answer.to_string());
                let command = format!("cat {}", place.join("answer.json").display());
                let hook = json!({ "hooks": [{ "type": "command", "command": command }] });
                let settings = json!({ "hooks": { "Elicitation": [hook] } });
                write(".claude/settings.json", settings.to_string());
            }
            Self::Codex => write(
                ".codex/config.toml",
                format!(
                    "model = \"scripted\"\nmodel_provider = \"stub\"\ncheck_for_update_on_startup = false\n\n\
                     [analytics]\nenabled = false\n\n\
                     [model_providers.stub]\nname = \"stub\"\nbase_url = \"{model}/v1\"\n\
                     wire_api = \"responses\"\nenv_key = \"STUB_KEY\"\n"
                ),
            ),
            Self::OpenCode => {
                let options = json!({ "baseURL": format!("{model}/v1"), "apiKey": "none" });
                let settings = json!({
                    "autoupdate": false,
                    "share": "disabled",
                    "enabled_providers": ["stub"],
                    "model": "stub/m",
                    "small_model": "stub/m",
                    "provider": { "stub": {
                        "npm": "@ai-sdk/openai-compatible",
                        "name": "stub",
                        "options": options,
                        "models": { "m": { "name": "m", "tool_call": true } },
                    } },
                });
                write(".config/opencode/opencode.json", settings.to_string());
            }
            Self::GeminiCli => {
                let settings = json!({
                    "security": {
                        "auth": { "selectedType": "gemini-api-key" },
                        "folderTrust": { "enabled": false },
                    },
                    "general": { "enableAutoUpdate": false, "disableAutoUpdate": true },
                    "privacy": { "usageStatisticsEnabled": false },
                    "telemetry": { "enabled": false },
                });
                write(".gemini/settings.json", settings.to_string());
            }
        }
    }

    fn command(self, program: &Path, model: &str) -> Command {
        let mut command = Command::new(program);
        match self {
            Self::ClaudeCode => {
                command
                    .args(["-p", "Go on.", "--allowedTools", "mcp__switchboard"])
                    .env("ANTHROPIC_BASE_URL", model)
                    .env("ANTHROPIC_API_KEY", "sk-ant-none")
                    .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
                    .env("DISABLE_AUTOUPDATER", "1")
                    .env("ENABLE_TOOL_SEARCH", "false");
            }
            Self::Codex => {
                command
                    .args(["exec", "--skip-git-repo-check"])
                    .args(["--dangerously-bypass-approvals-and-sandbox", "Go on."])
                    .env("STUB_KEY", "none");
            }
            Self::OpenCode => {
                command
                    .args(["run", "--model", "stub/m", "Go on."])
                    .env("OPENCODE_DISABLE_AUTOUPDATE", "1")
                    .env("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1")
                    .env("OPENCODE_DISABLE_LSP_DOWNLOAD", "1")
                    .env("OPENCODE_DISABLE_MODELS_FETCH", "1");
            }
            Self::GeminiCli => {
                command = Command::new(Tools::need(&[]).expect("it was found before").node());
                command
                    .arg(program)
                    .args(["--yolo", "-m", "gemini-2.5-flash", "-p", "Go on."])
                    .env("GEMINI_API_KEY", "none")
                    .env("GEMINI_CLI_NO_RELAUNCH", "true")
                    .env("GOOGLE_GEMINI_BASE_URL", model);
            }
        }
        command
    }
}

/// An agent at work, in a home of its own. On drop, it is killed if it still runs.
pub(crate) struct Run {
    agent: Agent,
    place: TempDir,
    pub(crate) model: Model,
    child: Child,
}

impl Run {
    /// Connects an agent to the gateway of this home, and makes it follow this script.
    pub(crate) fn start(agent: Agent, program: &Path, gateway: &Home, turns: &[Turn]) -> Self {
        Self::start_with(agent, program, gateway, turns, &[])
    }

    /// The same, with more options of `connect`.
    pub(crate) fn start_with(
        agent: Agent,
        program: &Path,
        gateway: &Home,
        turns: &[Turn],
        options: &[&str],
    ) -> Self {
        Self::start_in(new_place(), agent, program, gateway, turns, options)
    }

    /// The same, in this place.
    pub(crate) fn start_in(
        place: TempDir,
        agent: Agent,
        program: &Path,
        gateway: &Home,
        turns: &[Turn],
        options: &[&str],
    ) -> Self {
        let model = Model::start(agent.dialect(), turns);
        let address = format!("http://{}", model.address);
        agent.configure(place.path(), &address);
        let words = [&["connect", agent.client(), "--yes"], options].concat();
        let mut connect = gateway.command(&words);
        let connected = at(&mut connect, place.path()).output().unwrap();
        assert!(connected.status.success(), "{agent:?}: {connected:?}");
        let log = fs::File::create(place.path().join("log")).unwrap();
        let mut command = agent.command(program, &address);
        let child = at(&mut command, place.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            // A process group of its own, so that its children can be killed with it.
            .process_group(0)
            .spawn()
            .unwrap();
        Self {
            agent,
            place,
            model,
            child,
        }
    }

    /// Waits until the agent exits.
    #[track_caller]
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let what = format!("{:?} has ended", self.agent);
        until(&what, || self.child.try_wait().unwrap())
    }

    /// The output of the agent so far.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(self.place.path().join("log")).unwrap_or_default()
    }

    /// Interrupts the agent, as Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        kill_process(self.pid(), Signal::INT).unwrap();
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{:?} said:\n{}", self.agent, self.said());
            eprintln!("it asked:\n{}", self.model.requests());
            eprintln!("results: {:#?}", self.model.results());
        }
        let _ = kill_process_group(self.pid(), Signal::KILL);
        let _ = self.child.wait();
    }
}

/// A home for an agent, with the directory `work` in which it runs.
pub(crate) fn new_place() -> TempDir {
    let place = tempfile::Builder::new().prefix("sb-").tempdir().unwrap();
    fs::create_dir(place.path().join("work")).unwrap();
    place
}

/// Runs the command in a home of its own: without the user's files, and with no network but loopback.
fn at<'a>(command: &'a mut Command, place: &Path) -> &'a mut Command {
    const NOWHERE: &str = "http://127.0.0.1:9";
    let wanted: Vec<(_, Option<_>)> = command
        .get_envs()
        .map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned)))
        .collect();
    command.env_clear();
    for (name, value) in wanted {
        command.envs(value.map(|value| (name, value)));
    }
    let folder = |name: &str| {
        let folder = place.join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    };
    command
        .current_dir(folder("work"))
        .env("HOME", place)
        .env("TMPDIR", folder("tmp"))
        .env("XDG_CONFIG_HOME", folder(".config"))
        .env("XDG_DATA_HOME", folder(".local/share"))
        .env("XDG_STATE_HOME", folder(".local/state"))
        .env("XDG_CACHE_HOME", folder(".cache"))
        .env("PATH", env::var_os("PATH").unwrap_or_default())
        .env("LANG", "C.UTF-8")
        .env("TERM", "dumb")
        .env("NO_COLOR", "1")
        .env("DO_NOT_TRACK", "1")
        .env("HTTP_PROXY", NOWHERE)
        .env("HTTPS_PROXY", NOWHERE)
        .env("NO_PROXY", "127.0.0.1,localhost")
}

/// The pending requests.
pub(crate) fn waiting(gateway: &Home) -> Vec<Value> {
    let output = gateway.run(&["approvals", "--json"]);
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    listed["approvals"].as_array().cloned().unwrap_or_default()
}
