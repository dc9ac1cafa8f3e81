//! Standard input and output for the async runtime.
//!
//! Clients usually pass pipes or sockets, which the runtime can poll without a thread. Anything
//! else (a terminal, a file) needs one.

use std::{
    fs::File,
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::FileTypeExt,
        unix::net::UnixStream as StdUnixStream,
    },
};

use tokio::{
    io::{AsyncRead, AsyncWrite, stdin, stdout},
    net::{UnixStream, unix::pipe},
};

/// The end from which messages are read.
pub type Reader = Box<dyn AsyncRead + Send + Unpin>;
/// The end to which messages are written.
pub type Writer = Box<dyn AsyncWrite + Send + Unpin>;

pub(super) fn open() -> (Reader, Writer) {
    (reader(), writer())
}

fn reader() -> Reader {
    let fd = rustix::stdio::stdin();
    let opened = duplicate(fd).and_then(|(fd, kind)| match kind {
        Kind::Pipe => Ok(Box::new(pipe::Receiver::from_owned_fd(fd)?) as Reader),
        Kind::Socket => Ok(Box::new(socket(fd)?) as Reader),
        Kind::Other => Err(io::ErrorKind::Unsupported.into()),
    });
    opened.unwrap_or_else(|_| Box::new(stdin()))
}

fn writer() -> Writer {
    let fd = rustix::stdio::stdout();
    let opened = duplicate(fd).and_then(|(fd, kind)| match kind {
        Kind::Pipe => Ok(Box::new(pipe::Sender::from_owned_fd(fd)?) as Writer),
        Kind::Socket => Ok(Box::new(socket(fd)?) as Writer),
        Kind::Other => Err(io::ErrorKind::Unsupported.into()),
    });
    opened.unwrap_or_else(|_| Box::new(stdout()))
}

enum Kind {
    Pipe,
    Socket,
    Other,
}

fn duplicate(fd: impl AsFd) -> io::Result<(OwnedFd, Kind)> {
    let file = File::from(fd.as_fd().try_clone_to_owned()?);
    let kind = file.metadata()?.file_type();
    let kind = if kind.is_fifo() {
        Kind::Pipe
    } else if kind.is_socket() {
        Kind::Socket
    } else {
        Kind::Other
    };
    Ok((file.into(), kind))
}

fn socket(fd: OwnedFd) -> io::Result<UnixStream> {
    let stream = StdUnixStream::from(fd);
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}
