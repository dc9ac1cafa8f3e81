//! Servers in containers, through the command line of docker or podman.
//!
//! The engine's command, `ENGINE run -i --rm …`, is the contained process; the container itself is a child of
//! the engine and not of the guard. So the container gets a name that identifies its gateway and server, and
//! labels, and is stopped, killed and removed by that name through the engine.

use std::{
    ffi::{OsStr, OsString},
    fmt,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::Command,
    time::Duration,
};

use crate::{
    engine_env::{is_engine_env, is_needed},
    instance::{Instance, Token},
    program::find_program,
};

/// The label that names the gateway instance that a container belongs to.
pub(crate) const INSTANCE_LABEL: &str = "switchboard.instance";
/// The label that names the server that a container runs.
const SERVER_LABEL: &str = "switchboard.server";

/// A container engine: the first words of its commands, and their environment.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Engine {
    command: Vec<String>,
    env: Vec<(OsString, OsString)>,
}

impl Engine {
    /// An engine with this command, such as `podman`, and options that precede every subcommand, such as
    /// `--cgroup-manager=cgroupfs`.
    pub fn new(
        program: impl Into<String>,
        options: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let mut command = vec![program.into()];
        command.extend(options.into_iter().map(Into::into));
        Self {
            command,
            env: Vec::new(),
        }
    }

    /// Takes the variables that engines need from these. An engine inherits no others.
    #[must_use]
    pub fn inherit(mut self, variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let variables = variables.into_iter();
        self.env = variables.filter(|(name, _)| is_needed(name)).collect();
        self
    }

    /// Finds the installed engine: `docker`, or else `podman`, in this search path. Relative directories are
    /// ignored.
    pub fn detect(path: &OsStr) -> Option<Self> {
        let find = |program: &str| find_program(program.as_ref(), Some(path));
        let file = ["docker", "podman"].into_iter().find_map(find)?;
        Some(Self::new(file.to_str()?, [""; 0]))
    }

    /// The same engine with its command resolved to a file, if there is one. Its commands then run that file,
    /// regardless of later changes to the search path.
    #[must_use]
    pub fn located(mut self) -> Self {
        let file = self
            .file()
            .and_then(|file| file.into_os_string().into_string().ok());
        if let (Some(program), Some(file)) = (self.command.first_mut(), file) {
            *program = file;
        }
        self
    }

    /// The engine's name, for display.
    pub fn name(&self) -> &str {
        let program = self.command.first().map_or("", String::as_str);
        program.rsplit('/').next().unwrap_or(program)
    }

    pub(crate) fn words(&self) -> &[String] {
        &self.command
    }

    /// The file of its command, if it is found.
    pub fn file(&self) -> Option<PathBuf> {
        let path = self.env.iter().find(|(name, _)| name == "PATH");
        find_program(
            self.command.first()?.as_ref(),
            path.map(|(_, path)| path.as_os_str()),
        )
    }

    /// The variables that the engine inherits.
    pub fn variables(&self) -> &[(OsString, OsString)] {
        &self.env
    }

    pub(crate) fn push_word(&mut self, word: String) {
        self.command.push(word);
    }

    pub(crate) fn push_variable(&mut self, variable: (OsString, OsString)) {
        self.env.push(variable);
    }

    /// A command of the engine, such as `["rm", "-f", "NAME"]`, with only the engine's environment, in a
    /// directory that other users cannot write to. `None` if the engine is not found.
    pub(crate) fn run(&self, words: &[&str]) -> Option<Command> {
        let (program, options) = self.command.split_first()?;
        let mut command = Command::new(self.file()?);
        command
            .arg0(program)
            .args(options)
            .args(words)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir("/");
        Some(command)
    }
}

/// Omits the environment, because values may be secrets.
impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("command", &self.command)
            .finish_non_exhaustive()
    }
}

/// A directory or file of the host that is mounted into a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Path on the host. It is absolute.
    pub source: PathBuf,
    /// Path in the container.
    pub target: PathBuf,
    /// The container may write to it.
    pub writable: bool,
}

/// A container to run, and its permissions.
///
/// By default it has no network, no capabilities, no way to gain privileges, 1 GiB of memory and 256
/// processes. The engine does not log its output.
#[derive(Clone)]
pub struct Container {
    pub(crate) image: String,
    pub(crate) args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    memory: Option<String>,
    cpus: Option<String>,
    pids: Option<u32>,
    network: Option<String>,
    mounts: Vec<Mount>,
    read_only: bool,
    run_args: Vec<OsString>,
}

impl Container {
    /// Runs `image`, with the image's own command unless there are [`args`](crate::Launch::args).
    pub fn new(image: impl Into<String>) -> Self {
        Self {
            image: image.into(),
            args: Vec::new(),
            env: Vec::new(),
            memory: Some("1g".to_owned()),
            cpus: None,
            pids: Some(256),
            network: Some("none".to_owned()),
            mounts: Vec::new(),
            read_only: false,
            run_args: Vec::new(),
        }
    }

    /// Sets an environment variable in the container. Its value does not appear in the command line, unless
    /// the engine's own command uses a variable of that name, such as `PATH` or `DOCKER_HOST`.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env
            .push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Limits the memory, in the engine's notation: `512m`. `None`: no limit.
    #[must_use]
    pub fn memory(mut self, memory: Option<String>) -> Self {
        self.memory = memory;
        self
    }

    /// Limits the processor time, in the engine's notation: `1.5`. `None`: no limit.
    #[must_use]
    pub fn cpus(mut self, cpus: Option<String>) -> Self {
        self.cpus = cpus;
        self
    }

    /// Limits the number of processes. `None`: no limit.
    #[must_use]
    pub fn pids(mut self, pids: Option<u32>) -> Self {
        self.pids = pids;
        self
    }

    /// Selects the engine's network to join, such as `bridge`. `None`: the engine's default.
    #[must_use]
    pub fn network(mut self, network: Option<String>) -> Self {
        self.network = network;
        self
    }

    /// Mounts a part of the host's file system.
    #[must_use]
    pub fn mount(mut self, mount: Mount) -> Self {
        self.mounts.push(mount);
        self
    }

    /// Makes the container's own file system read-only.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Adds an argument for the engine's `run`. It follows the gateway's arguments, and may override them.
    #[must_use]
    pub fn run_arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.run_args.push(arg.as_ref().to_owned());
        self
    }

    /// The engine's command that runs this container.
    pub(crate) fn command(
        &self,
        engine: &Engine,
        instance: &Instance,
        server: &str,
        token: &Token,
    ) -> Run {
        let named = Named {
            engine: engine.clone(),
            name: format!(
                "switchboard-{instance}-{}-{}",
                plain(server),
                token.as_str()
            ),
        };
        let mut words: Vec<OsString> = engine.words().iter().map(OsString::from).collect();
        words.extend(["run", "-i", "--rm", "--name"].map(OsString::from));
        words.push(OsString::from(&named.name));
        let mut option = |name: &str, value: &str| {
            words.extend([OsString::from(name), OsString::from(value)]);
        };
        option("--label", &format!("{INSTANCE_LABEL}={instance}"));
        option("--label", &format!("{SERVER_LABEL}={server}"));
        if let Some(network) = &self.network {
            option("--network", network);
        }
        if let Some(memory) = &self.memory {
            option("--memory", memory);
        }
        if let Some(cpus) = &self.cpus {
            option("--cpus", cpus);
        }
        if let Some(pids) = self.pids {
            option("--pids-limit", &pids.to_string());
        }
        option("--cap-drop", "ALL");
        option("--security-opt", "no-new-privileges");
        // The engine must not store the protocol's messages on disk.
        option("--log-driver", "none");
        if self.read_only {
            words.push("--read-only".into());
        }
        for mount in &self.mounts {
            words.extend(["--mount".into(), mount.words()]);
        }
        let mut env = engine.env.clone();
        for (name, value) in &self.env {
            words.push("-e".into());
            let mut word = name.clone();
            if is_engine_env(name) {
                word.push("=");
                word.push(value);
            } else {
                env.push((name.clone(), value.clone()));
            }
            words.push(word);
        }
        words.extend(self.run_args.iter().cloned());
        words.push(OsString::from(&self.image));
        words.extend(self.args.iter().cloned());
        Run { words, env, named }
    }
}

impl fmt::Debug for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Container")
            .field("image", &self.image)
            .finish_non_exhaustive()
    }
}

impl Mount {
    /// The mount in the engines' notation: comma-separated fields, quoted as in CSV.
    fn words(&self) -> OsString {
        let mut words = OsString::from("type=bind");
        for (name, path) in [("source", &self.source), ("target", &self.target)] {
            words.push(",");
            let path = path.to_string_lossy();
            if path.contains([',', '"', '\n']) {
                words.push(format!("\"{name}={}\"", path.replace('"', "\"\"")));
            } else {
                words.push(format!("{name}={path}"));
            }
        }
        if !self.writable {
            words.push(",readonly");
        }
        words
    }
}

/// The engine's command for one container.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) words: Vec<OsString>,
    /// Environment of the command, which passes it on.
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) named: Named,
}

/// A container that runs or ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) engine: Engine,
    pub(crate) name: String,
}

/// The time for the engine to kill a container, and again to remove it.
pub(crate) const ENGINE_TIME: Duration = Duration::from_secs(3);

impl Named {
    /// Sends it SIGTERM, and kills it after `time`.
    pub(crate) fn stop(&self, time: Duration) -> Option<Command> {
        let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
        let seconds = seconds.max(1).to_string();
        self.engine.run(&["stop", "-t", &seconds, &self.name])
    }

    pub(crate) fn kill(&self) -> Option<Command> {
        self.engine.run(&["kill", &self.name])
    }

    pub(crate) fn remove(&self) -> Option<Command> {
        self.engine.run(&["rm", "-f", &self.name])
    }
}

/// A server's name as a part of a container's name.
fn plain(name: &str) -> String {
    name.chars()
        .take(40)
        .map(|char| {
            if char.is_ascii_alphanumeric() {
                char
            } else {
                '-'
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_cannot_inject_into_the_container_name() {
        let run = Container::new("img").command(
            &Engine::new("docker", [""; 0]),
            &"main".parse().unwrap(),
            "my files/../--rm é",
            &Token::parse(&"0".repeat(32)).unwrap(),
        );
        assert_eq!(
            run.named.name,
            format!("switchboard-main-my-files------rm---{}", "0".repeat(32))
        );
    }

    #[test]
    fn network_defaults_to_none() {
        let networks = |container: Container| {
            let run = container.command(
                &Engine::new("docker", [""; 0]),
                &"main".parse().unwrap(),
                "files",
                &Token::parse(&"0".repeat(32)).unwrap(),
            );
            let at = run.words.iter().position(|word| word == "--network");
            at.map(|at| run.words[at + 1].clone())
        };
        let container = || Container::new("img");
        assert_eq!(networks(container()), Some("none".into()));
        let named = container().network(Some("bridge".into()));
        assert_eq!(networks(named), Some("bridge".into()));
        assert_eq!(networks(container().network(None)), None);
    }

    #[test]
    fn stop_time_is_at_least_one_second() {
        let named = Named {
            engine: Engine::new("/bin/sh", [""; 0]),
            name: "x".into(),
        };
        for (millis, seconds) in [
            (0, "1"),
            (300, "1"),
            (1_000, "1"),
            (1_001, "2"),
            (14_000, "14"),
        ] {
            let command = named.stop(Duration::from_millis(millis)).unwrap();
            assert_eq!(command.get_program(), "/bin/sh");
            let words: Vec<_> = command.get_args().collect();
            assert_eq!(words, ["stop", "-t", seconds, "x"]);
        }
    }

    #[test]
    fn mount_accepts_any_path() {
        let mount = Mount {
            source: "/a,b \"c\"".into(),
            target: "/data".into(),
            writable: false,
        };
        assert_eq!(
            mount.words(),
            "type=bind,\"source=/a,b \"\"c\"\"\",target=/data,readonly"
        );
    }
}
