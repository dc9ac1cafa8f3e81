//! The start of a guard: it receives the server's pipes and the commission, and starts the server.

use std::{
    fs::{self, File},
    io::{self, IoSliceMut, Read, Write},
    os::unix::{net::UnixStream, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use rustix::{
    fd::{AsFd, OwnedFd},
    io::{Errno, fcntl_dupfd_cloexec},
    net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg},
    process::{Pid, getpid},
    stdio::{dup2_stderr, dup2_stdin, dup2_stdout, stdin},
};

use crate::{
    become_subreaper,
    control::{self, COMMISSION_BYTES, Commission, Lines, Report},
    error::StartFailure,
    process::Identity,
    program::{file_to_start, interpreter},
    records::{self, Record},
};

use super::{
    Guard,
    rungs::Rungs,
    signals::{self, Children},
};

/// The reason why there is nothing to guard.
pub(super) enum NotStarted {
    /// A user ran this directly, not a gateway.
    ByHand,
    /// Something failed, and the gateway was notified if possible.
    Failed,
}

impl From<io::Error> for NotStarted {
    fn from(_: io::Error) -> Self {
        Self::Failed
    }
}

impl From<Errno> for NotStarted {
    fn from(_: Errno) -> Self {
        Self::Failed
    }
}

/// Becomes a guard, and starts the server.
pub(super) fn prepare() -> Result<Guard, NotStarted> {
    let children = Children::watch()?;
    become_subreaper()?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    let mut control = UnixStream::from(fcntl_dupfd_cloexec(stdin(), 3)?);
    let pipes = receive_pipes(&control)?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    let (commission, lines) = receive_commission(&mut control)?;

    let mut record = Identity::of(getpid()).map(|guard| Record {
        name: commission.name.clone(),
        marker: commission.marker.clone(),
        boot: records::boot().unwrap_or_default(),
        guard,
        leader: None,
        container: commission
            .container
            .as_ref()
            .map(|container| container.name.clone()),
    });
    // Written before the server starts: if this guard is killed in between, the marker is known.
    let mut recorded = record
        .as_ref()
        .map_or(Ok(()), |record| record.write(&commission.records));
    let started = match start(&commission, pipes) {
        Ok(child) => i32::try_from(child.id()).ok().and_then(Pid::from_raw),
        Err(failed) => {
            records::remove(&commission.records, &commission.marker.token);
            control.write_all(Report::Failed(failed).line().as_bytes())?;
            return Err(NotStarted::Failed);
        }
    };
    let leader = started.ok_or(NotStarted::Failed)?;
    let identity = Identity::of(leader);
    if let Some(record) = &mut record
        && recorded.is_ok()
    {
        record.leader = identity;
        recorded = record.write(&commission.records);
    }
    control.set_nonblocking(true)?;
    let mut guard = Guard {
        control: Some(control),
        lines,
        children,
        rungs: Rungs::new(commission.leftovers),
        leader,
        leader_left: false,
        records: commission.records,
        record,
        container: commission.container,
        helper: None,
        removed: false,
        insisting_since: None,
        killed: 0,
    };
    guard.report(&Report::Started {
        pid: leader.as_raw_nonzero().get().unsigned_abs(),
        leader: identity,
    });
    if let Err(error) = recorded {
        guard.report(&Report::Unrecorded(error.to_string()));
    }
    Ok(guard)
}

struct Pipes {
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

fn receive_pipes(control: &UnixStream) -> Result<Pipes, NotStarted> {
    let mut byte = [0];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::io::retry_on_intr(|| {
        recvmsg(
            control.as_fd(),
            &mut [IoSliceMut::new(&mut byte)],
            &mut ancillary,
            receive_flags(),
        )
    });
    match received {
        Ok(message) if message.bytes == 1 => {}
        Ok(_) => return Err(NotStarted::Failed),
        Err(_) => return Err(NotStarted::ByHand),
    }
    let mut fds = ancillary
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        })
        .flatten();
    let mut next = || {
        let fd = fds.next().ok_or(NotStarted::Failed)?;
        // For systems on which `receive_flags` cannot set this.
        rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)?;
        Ok::<_, NotStarted>(fd)
    };
    Ok(Pipes {
        stdin: next()?,
        stdout: next()?,
        stderr: next()?,
    })
}

#[cfg(target_os = "linux")]
fn receive_flags() -> RecvFlags {
    RecvFlags::CMSG_CLOEXEC
}

#[cfg(not(target_os = "linux"))]
fn receive_flags() -> RecvFlags {
    RecvFlags::empty()
}

/// Reads the commission, and any orders that arrive with it.
fn receive_commission(control: &mut UnixStream) -> Result<(Commission, Lines), NotStarted> {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = match control.read(&mut buffer) {
            Ok(0) => return Err(NotStarted::Failed),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        let seen = bytes.len().saturating_sub(1);
        bytes.extend_from_slice(&buffer[..read]);
        if let Some(end) = bytes[seen..].windows(2).position(|pair| pair == [0, 0]) {
            let (commission, orders) = bytes.split_at(seen + end + 2);
            let mut lines = Lines::default();
            lines.push(orders);
            let commission = Commission::decode(commission).ok_or(NotStarted::Failed)?;
            return Ok((commission, lines));
        }
        if bytes.len() > COMMISSION_BYTES {
            return Err(NotStarted::Failed);
        }
    }
}

fn start(commission: &Commission, pipes: Pipes) -> Result<Child, control::NotStarted> {
    enter(&commission.cwd)
        .map_err(|error| not_started(StartFailure::WorkingDirectory, &error, None))?;
    let Some(file) = file(commission) else {
        return Err(not_started(
            StartFailure::NotFound,
            &Errno::NOENT.into(),
            None,
        ));
    };
    // The path contains a slash, so no search path is used, and no other file is started if this one cannot
    // be.
    let mut command = Command::new(&file);
    command
        .arg0(&commission.program)
        .args(&commission.args)
        .env_clear()
        .envs(commission.env.iter().map(|(name, value)| (name, value)))
        .env(crate::instance::MARKER, commission.marker.to_string())
        .stdin(Stdio::from(pipes.stdin))
        .stdout(Stdio::from(pipes.stdout))
        .stderr(Stdio::from(pipes.stderr))
        .current_dir(&commission.cwd)
        .process_group(0);
    signals::start_clean(&mut command);
    command.spawn().map_err(|error| match error.kind() {
        // The file exists, so something else was not found.
        io::ErrorKind::NotFound if file.is_file() => {
            not_started(StartFailure::Interpreter, &error, interpreter(&file))
        }
        io::ErrorKind::NotFound => not_started(StartFailure::NotFound, &error, None),
        io::ErrorKind::PermissionDenied => {
            not_started(StartFailure::PermissionDenied, &error, None)
        }
        _ if error.raw_os_error() == Some(libc::ENOEXEC) => {
            not_started(StartFailure::NotExecutable, &error, None)
        }
        _ => not_started(StartFailure::Other, &error, None),
    })
}

fn not_started(
    failure: StartFailure,
    error: &io::Error,
    interpreter: Option<String>,
) -> control::NotStarted {
    control::NotStarted {
        failure,
        errno: error.raw_os_error().unwrap_or(0),
        interpreter,
    }
}

/// The file to start.
fn file(commission: &Commission) -> Option<PathBuf> {
    if commission.file.is_some() {
        return commission.file.clone();
    }
    let path = commission.env.iter().rev().find(|(name, _)| name == "PATH");
    let path = path.map(|(_, path)| path.as_os_str());
    file_to_start(commission.program.as_ref(), path, &commission.cwd)
}

/// Tests if a directory can be entered, without changing to it.
fn enter(dir: &Path) -> io::Result<()> {
    if !fs::metadata(dir)?.is_dir() {
        return Err(Errno::NOTDIR.into());
    }
    Ok(rustix::fs::access(dir, rustix::fs::Access::EXEC_OK)?)
}
