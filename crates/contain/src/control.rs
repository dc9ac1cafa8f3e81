//! The protocol between the gateway and a guard.
//!
//! First the gateway sends one byte with the server's three pipes, then the [`Commission`]: fields that end
//! with a zero byte, which no argument or path can contain, and an empty field at the end. From then on both
//! sides send lines, [`Order`]s and [`Report`]s. When the socket closes, the other side has died.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::PathBuf,
    time::Duration,
};

use crate::{
    container::{Engine, Named},
    error::StartFailure,
    instance::Marker,
    launch::Ladder,
    process::Identity,
    report::Rung,
};

/// The largest commission, in bytes. The system's own limits on arguments and environments are far lower.
pub(crate) const COMMISSION_BYTES: usize = 8 * 1024 * 1024;
/// The longest line, in bytes.
pub(crate) const LINE_BYTES: usize = 4 * 1024;

/// The server that a guard has to start, and its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Commission {
    pub(crate) name: String,
    /// The program, as its `argv[0]`.
    pub(crate) program: OsString,
    /// The file to start, if it has already been looked up.
    pub(crate) file: Option<PathBuf>,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cwd: PathBuf,
    pub(crate) marker: Marker,
    /// The directory of records.
    pub(crate) records: PathBuf,
    /// Times for which processes that the server leaves behind may stay, before and after SIGTERM.
    pub(crate) leftovers: Ladder,
    pub(crate) container: Option<Named>,
}

impl Commission {
    /// Encodes the commission. Fails for values that cannot be passed to a program either.
    pub(crate) fn encode(&self) -> io::Result<Vec<u8>> {
        let mut out = Fields(Vec::new());
        out.field(b'n', self.name.as_bytes())?;
        out.field(b'p', self.program.as_bytes())?;
        if let Some(file) = &self.file {
            out.field(b'f', file.as_os_str().as_bytes())?;
        }
        for arg in &self.args {
            out.field(b'a', arg.as_bytes())?;
        }
        out.variables(b'e', &self.env)?;
        out.field(b'd', self.cwd.as_os_str().as_bytes())?;
        out.field(b'm', self.marker.to_string().as_bytes())?;
        out.field(b'l', self.records.as_os_str().as_bytes())?;
        out.field(b's', ladder_words(self.leftovers).as_bytes())?;
        if let Some(container) = &self.container {
            out.field(b'c', container.name.as_bytes())?;
            for word in container.engine.words() {
                out.field(b'g', word.as_bytes())?;
            }
            out.variables(b'v', container.engine.variables())?;
        }
        out.0.push(0);
        if out.0.len() > COMMISSION_BYTES {
            return Err(invalid("the arguments and the environment are too large"));
        }
        Ok(out.0)
    }

    /// Decodes the output of [`encode`](Self::encode), without the empty field at its end.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut name = None;
        let mut program = None;
        let mut file = None;
        let mut args = Vec::new();
        let mut env = Vec::new();
        let mut cwd = None;
        let mut marker = None;
        let mut records = None;
        let mut leftovers = None;
        let mut container: Option<Named> = None;
        for field in bytes.split(|&byte| byte == 0) {
            let Some((tag, value)) = field.split_first() else {
                continue;
            };
            let os = || OsStr::from_bytes(value).to_owned();
            match tag {
                b'n' => name = Some(text(value)?),
                b'p' => program = Some(os()),
                b'f' => file = Some(PathBuf::from(os())),
                b'a' => args.push(os()),
                b'e' => env.push(variable(value)?),
                b'd' => cwd = Some(PathBuf::from(os())),
                b'm' => marker = Some(Marker::parse(&text(value)?)?),
                b'l' => records = Some(PathBuf::from(os())),
                b's' => leftovers = Some(parse_ladder(&text(value)?)?),
                b'c' => {
                    container = Some(Named {
                        engine: Engine::default(),
                        name: text(value)?,
                    });
                }
                b'g' => container.as_mut()?.engine.push_word(text(value)?),
                b'v' => container.as_mut()?.engine.push_variable(variable(value)?),
                _ => return None,
            }
        }
        Some(Self {
            name: name?,
            program: program?,
            file,
            args,
            env,
            cwd: cwd?,
            marker: marker?,
            records: records?,
            leftovers: leftovers?,
            container,
        })
    }
}

struct Fields(Vec<u8>);

impl Fields {
    fn field(&mut self, tag: u8, value: &[u8]) -> io::Result<()> {
        if value.contains(&0) {
            return Err(invalid(
                "an argument, a path or a variable contains a NUL byte",
            ));
        }
        self.0.push(tag);
        self.0.extend_from_slice(value);
        self.0.push(0);
        Ok(())
    }

    fn variables(&mut self, tag: u8, variables: &[(OsString, OsString)]) -> io::Result<()> {
        for (name, value) in variables {
            let name = name.as_bytes();
            if name.is_empty() || name.contains(&b'=') {
                return Err(invalid(
                    "the name of an environment variable is empty or contains `=`",
                ));
            }
            self.field(tag, &[name, b"=", value.as_bytes()].concat())?;
        }
        Ok(())
    }
}

/// `NAME=value`.
fn variable(field: &[u8]) -> Option<(OsString, OsString)> {
    let equals = field.iter().position(|&byte| byte == b'=')?;
    let (name, value) = field.split_at(equals);
    Some((
        OsString::from_vec(name.to_vec()),
        OsString::from_vec(value.get(1..)?.to_vec()),
    ))
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

fn text(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

/// A message from the gateway to the guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Stop(Ladder),
    Kill,
}

impl Order {
    pub(crate) fn line(self) -> String {
        match self {
            Self::Stop(ladder) => format!("stop {}\n", ladder_words(ladder)),
            Self::Kill => "kill\n".to_owned(),
        }
    }

    pub(crate) fn parse(line: &str) -> Option<Self> {
        match line.split_once(' ') {
            Some(("stop", ladder)) => Some(Self::Stop(parse_ladder(ladder)?)),
            None if line == "kill" => Some(Self::Kill),
            _ => None,
        }
    }
}

/// The reason why a server did not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotStarted {
    pub(crate) failure: StartFailure,
    pub(crate) errno: i32,
    /// The interpreter that was not found, for display.
    pub(crate) interpreter: Option<String>,
}

/// A message from the guard to the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// `leader` has the start time, on systems where that is known.
    Started {
        pid: u32,
        leader: Option<Identity>,
    },
    Failed(NotStarted),
    /// The exit status, as reported by the system.
    Exited(i32),
    SentTerm(usize),
    SentKill(usize),
    StoppingContainer,
    KillingContainer,
    Unrecorded(String),
    Gone {
        rung: Rung,
        took: Duration,
    },
}

impl Report {
    pub(crate) fn line(&self) -> String {
        match self {
            Self::Started { pid, leader } => match leader {
                Some(leader) => format!("started {pid} {}\n", leader.started),
                None => format!("started {pid}\n"),
            },
            Self::Failed(NotStarted {
                failure,
                errno,
                interpreter,
            }) => {
                let interpreter = clean(interpreter.as_deref().unwrap_or_default());
                format!("failed {} {errno} {interpreter}\n", failure.word())
            }
            Self::Exited(status) => format!("exited {status}\n"),
            Self::SentTerm(count) => format!("term {count}\n"),
            Self::SentKill(count) => format!("kill {count}\n"),
            Self::StoppingContainer => "stop-container\n".to_owned(),
            Self::KillingContainer => "kill-container\n".to_owned(),
            Self::Unrecorded(why) => format!("unrecorded {}\n", clean(why)),
            Self::Gone { rung, took } => format!("gone {} {}\n", rung.word(), took.as_millis()),
        }
    }

    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        Some(match word {
            "started" => {
                let (pid, time) = rest.split_once(' ').unwrap_or((rest, ""));
                let identity = |started| {
                    let pid = pid.parse().ok()?;
                    Some(Identity { pid, started })
                };
                Self::Started {
                    pid: pid.parse().ok()?,
                    leader: time.parse().ok().and_then(identity),
                }
            }
            "failed" => {
                let (failure, rest) = rest.split_once(' ')?;
                let (errno, interpreter) = rest.split_once(' ').unwrap_or((rest, ""));
                Self::Failed(NotStarted {
                    failure: StartFailure::parse(failure)?,
                    errno: errno.parse().ok()?,
                    interpreter: Some(interpreter.to_owned()).filter(|name| !name.is_empty()),
                })
            }
            "exited" => Self::Exited(rest.parse().ok()?),
            "term" => Self::SentTerm(rest.parse().ok()?),
            "kill" => Self::SentKill(rest.parse().ok()?),
            "stop-container" => Self::StoppingContainer,
            "kill-container" => Self::KillingContainer,
            "unrecorded" => Self::Unrecorded(rest.to_owned()),
            "gone" => {
                let (rung, took) = rest.split_once(' ')?;
                Self::Gone {
                    rung: Rung::parse(rung)?,
                    took: Duration::from_millis(took.parse().ok()?),
                }
            }
            _ => return None,
        })
    }
}

/// Makes a text for display fit on one line.
fn clean(text: &str) -> String {
    let printable = text
        .chars()
        .map(|char| if char.is_control() { ' ' } else { char });
    printable.take(LINE_BYTES / 8).collect()
}

fn ladder_words(ladder: Ladder) -> String {
    format!("{} {}", ladder.close.as_millis(), ladder.term.as_millis())
}

fn parse_ladder(words: &str) -> Option<Ladder> {
    let (close, term) = words.split_once(' ')?;
    let time = |word: &str| Some(Duration::from_millis(word.parse().ok()?).min(LONGEST));
    Some(Ladder {
        close: time(close)?,
        term: time(term)?,
    })
}

/// The longest time of a rung: one day, so that no sum of times overflows.
const LONGEST: Duration = Duration::from_hours(24);

/// Splits input into lines. A line that is too long is discarded.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    buffer: Vec<u8>,
}

impl Lines {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    pub(crate) fn next_line(&mut self) -> Option<String> {
        let Some(end) = self.buffer.iter().position(|&byte| byte == b'\n') else {
            if self.buffer.len() > LINE_BYTES {
                self.buffer.clear();
            }
            return None;
        };
        let line = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
        self.buffer.drain(..=end);
        Some(line)
    }
}

/// Parses bytes as every message of the protocol, in both directions, for the fuzz target. A message that
/// parses must survive another round trip.
#[doc(hidden)]
#[allow(clippy::missing_panics_doc, reason = "to panic is what a check is for")]
pub fn check_control(bytes: &[u8]) {
    let read = Commission::decode(bytes);
    if let Some(Ok(sent)) = read.as_ref().map(Commission::encode) {
        assert_eq!(Commission::decode(&sent), read);
    }
    let mut lines = Lines::default();
    lines.push(bytes);
    while let Some(line) = lines.next_line() {
        if let Some(order) = Order::parse(&line) {
            assert_eq!(Order::parse(order.line().trim_end()), Some(order));
        }
        match Report::parse(&line) {
            // Text for display, which is shortened and cleaned when it is sent.
            Some(report @ (Report::Unrecorded(_) | Report::Failed(_))) => {
                assert!(report.line().len() <= LINE_BYTES);
            }
            Some(report) => assert_eq!(Report::parse(report.line().trim_end()), Some(report)),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::instance::Token;

    fn commission() -> Commission {
        Commission {
            name: "files of Zoë".into(),
            program: "./server".into(),
            file: Some("/opt/server".into()),
            args: vec![
                "".into(),
                "a b".into(),
                OsString::from_vec(vec![0xff, b'\n']),
            ],
            env: vec![("A".into(), "1=2".into()), ("B".into(), "".into())],
            cwd: "/tmp".into(),
            marker: Marker {
                instance: "main".parse().unwrap(),
                token: Token::random().unwrap(),
            },
            records: "/run/groups".into(),
            leftovers: Ladder {
                close: Duration::from_millis(500),
                term: Duration::from_secs(2),
            },
            container: Some(Named {
                engine: Engine::new("podman", ["--runtime", "runc"])
                    .inherit([("PATH".into(), "/a=b".into())]),
                name: "switchboard-main-files-1".into(),
            }),
        }
    }

    #[test]
    fn commission_survives_a_round_trip() {
        let sent = commission();
        let bytes = sent.encode().unwrap();
        assert!(bytes.ends_with(&[0, 0]));
        assert_eq!(Commission::decode(&bytes), Some(sent));
    }

    #[test]
    fn values_that_no_program_accepts_are_refused() {
        let zero = Commission {
            args: vec!["a\0b".into()],
            ..commission()
        };
        let name = Commission {
            env: vec![("A=B".into(), "1".into())],
            ..commission()
        };
        for refused in [zero, name] {
            assert_eq!(
                refused.encode().unwrap_err().kind(),
                io::ErrorKind::InvalidInput
            );
        }
    }

    #[test]
    fn orders_and_reports_survive_a_round_trip() {
        for order in [Order::Stop(Ladder::PROCESS), Order::Kill] {
            assert_eq!(Order::parse(order.line().trim_end()), Some(order));
        }
        for report in [
            Report::Started {
                pid: 7,
                leader: None,
            },
            Report::Started {
                pid: 7,
                leader: Some(Identity {
                    pid: 7,
                    started: 4711,
                }),
            },
            Report::Failed(NotStarted {
                failure: StartFailure::WorkingDirectory,
                errno: 2,
                interpreter: None,
            }),
            Report::Failed(NotStarted {
                failure: StartFailure::Interpreter,
                errno: 2,
                interpreter: Some("/opt/my shell".into()),
            }),
            Report::Exited(9),
            Report::SentTerm(1),
            Report::SentKill(2),
            Report::StoppingContainer,
            Report::KillingContainer,
            Report::Unrecorded("no space left".into()),
            Report::Gone {
                rung: Rung::Term,
                took: Duration::from_millis(12),
            },
        ] {
            assert_eq!(Report::parse(report.line().trim_end()), Some(report));
        }
    }

    proptest! {
        #[test]
        fn damaged_commission_is_refused_or_consistent(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        ) {
            let mut bytes = commission().encode().unwrap();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            check_control(&bytes);
        }
    }
}
