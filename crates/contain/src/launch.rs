//! A server to start, and the way it is ended.

use std::{
    ffi::{OsStr, OsString},
    fmt,
    path::PathBuf,
    time::Duration,
};

use crate::container::{Container, Engine};

/// The steps by which a server is ended: its standard input is closed, then it receives SIGTERM, then
/// SIGKILL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ladder {
    /// Time to exit after its standard input is closed.
    pub close: Duration,
    /// Time to exit after SIGTERM.
    pub term: Duration,
}

impl Ladder {
    /// For a process: 10 s and 9 s.
    pub const PROCESS: Self = Self {
        close: Duration::from_secs(10),
        term: Duration::from_secs(9),
    };

    /// For a container: 10 s and 14 s. With the time for the engine to kill and remove it, 30 s in all.
    pub(crate) const CONTAINER: Self = Self {
        close: Duration::from_secs(10),
        term: Duration::from_secs(14),
    };
}

impl Default for Ladder {
    fn default() -> Self {
        Self::PROCESS
    }
}

/// A server to start, any number of times.
///
/// Its standard input, output and error are pipes. It inherits neither the environment nor the working
/// directory: it gets the variables of [`env`](Self::env) and `SWITCHBOARD_CONTAINED`, which identifies it
/// and all its descendants, and runs in [`cwd`](Self::cwd).
#[derive(Clone)]
pub struct Launch {
    pub(crate) name: String,
    pub(crate) what: What,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cwd: PathBuf,
    pub(crate) ladder: Ladder,
    pub(crate) file: Option<PathBuf>,
}

#[derive(Clone)]
pub(crate) enum What {
    Program {
        program: OsString,
        args: Vec<OsString>,
    },
    Container {
        engine: Engine,
        container: Box<Container>,
    },
}

impl Launch {
    /// A program. A bare name is looked up in the absolute directories of the `PATH` of [`env`](Self::env),
    /// or in the system's default directories if there is none. The first file found is started or fails: no
    /// later one takes its place. `name` is the server's name, for display.
    pub fn program(name: impl Into<String>, program: impl Into<OsString>) -> Self {
        Self::new(
            name.into(),
            What::Program {
                program: program.into(),
                args: Vec::new(),
            },
            Ladder::PROCESS,
        )
    }

    /// A container. [`env`](Self::env) and [`cwd`](Self::cwd) apply to the engine's command, not to the
    /// program inside; see [`Container`] for the latter.
    pub fn container(name: impl Into<String>, engine: Engine, container: Container) -> Self {
        Self::new(
            name.into(),
            What::Container {
                engine,
                container: Box::new(container),
            },
            Ladder::CONTAINER,
        )
    }

    fn new(name: String, what: What, ladder: Ladder) -> Self {
        Self {
            name,
            what,
            env: Vec::new(),
            cwd: "/".into(),
            ladder,
            file: None,
        }
    }

    /// Adds an argument: to the program, or to the command in the container.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        match &mut self.what {
            What::Program { args, .. } => args.push(arg.as_ref().to_owned()),
            What::Container { container, .. } => container.args.push(arg.as_ref().to_owned()),
        }
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        args.into_iter().fold(self, Self::arg)
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env
            .push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Sets the working directory, which is `/` by default.
    #[must_use]
    pub fn cwd(mut self, dir: impl Into<PathBuf>) -> Self {
        self.cwd = dir.into();
        self
    }

    /// Starts this file, an absolute path, instead of looking the program up. `argv[0]` is still the
    /// program's name as given.
    #[must_use]
    pub fn file(mut self, file: impl Into<PathBuf>) -> Self {
        self.file = Some(file.into());
        self
    }

    /// Sets the ladder that is used when the handle is dropped.
    #[must_use]
    pub fn ladder(mut self, ladder: Ladder) -> Self {
        self.ladder = ladder;
        self
    }

    /// The server's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The program or the image, for logs. Arguments are left out because they may contain secrets.
    pub fn describe(&self) -> String {
        match &self.what {
            What::Program { program, .. } => program.to_string_lossy().into_owned(),
            What::Container { engine, container } => {
                format!("{} run {}", engine.name(), container.image)
            }
        }
    }
}

impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch")
            .field("name", &self.name)
            .field("what", &self.describe())
            .finish_non_exhaustive()
    }
}
