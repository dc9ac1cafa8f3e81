//! What to start, and how it is to be ended.

use std::{
    ffi::{OsStr, OsString},
    fmt,
    path::PathBuf,
    time::Duration,
};

use crate::container::{Container, Engine};

/// How a server is ended: its standard input is closed, then it is asked with SIGTERM, then it is
/// ended with SIGKILL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ladder {
    /// How long it may take to leave once its standard input is closed.
    pub close: Duration,
    /// How long it may take to leave once it was asked.
    pub term: Duration,
}

impl Ladder {
    /// For a process: 10 s and 9 s.
    pub const PROCESS: Self = Self {
        close: Duration::from_secs(10),
        term: Duration::from_secs(9),
    };

    /// For a container: 10 s and 14 s. With what the engine may take to kill and to remove it
    /// there are 30 s in all.
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

/// A server to start, as often as wanted.
///
/// Its standard input, output and error are pipes. It inherits neither environment nor working directory:
/// it gets the variables of [`env`](Self::env) and `SWITCHBOARD_CONTAINED`, by which it and all that it
/// starts are known, and runs in [`cwd`](Self::cwd).
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
    /// A program. A bare name is looked up in the absolute directories of the `PATH` of [`env`](Self::env), or in the
    /// system's default directories if there is none. The first file found is started or fails: no later one takes
    /// its place. `name` is the server's, for people.
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

    /// A container. [`env`](Self::env) and [`cwd`](Self::cwd) apply to the engine's command, not to the program
    /// inside: for that see [`Container`].
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

    /// Adds an argument: to the program, or to what runs in the container.
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

    /// Starts this file, an absolute path, instead of looking the program up. The program sees its name as it was
    /// given.
    #[must_use]
    pub fn file(mut self, file: impl Into<PathBuf>) -> Self {
        self.file = Some(file.into());
        self
    }

    /// How it is ended when its handle is dropped.
    #[must_use]
    pub fn ladder(mut self, ladder: Ladder) -> Self {
        self.ladder = ladder;
        self
    }

    /// The server's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is started, for logs: the program or the image. Arguments may hold secrets.
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
