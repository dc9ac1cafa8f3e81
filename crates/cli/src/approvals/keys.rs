//! Keys as they are pressed, without waiting for the end of a line. The terminal is left as it was found.

use std::io::{self, PipeReader, Read as _};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr},
};

/// A terminal that gives each key at once.
#[derive(Debug)]
pub(super) struct Keys {
    before: Termios,
}

/// What came first.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Woken {
    /// A key was pressed.
    Key(u8),
    /// Nobody will press any more.
    NoKeys,
    /// The bell rang.
    Bell,
}

impl Keys {
    pub(super) fn new() -> io::Result<Self> {
        let keys = Self {
            before: tcgetattr(io::stdin())?,
        };
        keys.listen()?;
        Ok(keys)
    }

    fn listen(&self) -> io::Result<()> {
        let mut now = self.before.clone();
        // Ctrl-C comes as a key as well: whoever presses it leaves the terminal as it was.
        now.local_modes
            .remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        now.special_codes[SpecialCodeIndex::VMIN] = 1;
        now.special_codes[SpecialCodeIndex::VTIME] = 0;
        Ok(tcsetattr(io::stdin(), OptionalActions::Now, &now)?)
    }

    /// Does something that reads lines. What was typed before it asks is not taken for an answer.
    pub(super) fn paused<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        tcsetattr(io::stdin(), OptionalActions::Flush, &self.before)?;
        let done = work();
        self.listen()?;
        Ok(done)
    }

    /// Waits for a key or for the bell.
    pub(super) fn wait(bell: &mut PipeReader) -> io::Result<Woken> {
        let stdin = io::stdin();
        let [pressed, rang] = loop {
            let mut both = [
                PollFd::new(&stdin, PollFlags::IN),
                PollFd::new(&*bell, PollFlags::IN),
            ];
            match poll(&mut both, None) {
                Ok(_) => break both.map(|one| !one.revents().is_empty()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        };
        // What happened is told before a key is taken: it may be about what is no more.
        if rang {
            let mut rings = [0; 256];
            let _ = bell.read(&mut rings)?;
            return Ok(Woken::Bell);
        }
        debug_assert!(pressed, "one of both woke");
        let mut key = [0];
        match rustix::io::read(&stdin, &mut key) {
            Ok(0) | Err(Errno::IO) => Ok(Woken::NoKeys),
            Ok(_) => Ok(Woken::Key(key[0])),
            Err(Errno::INTR | Errno::AGAIN) => Ok(Woken::Bell),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // There is nothing to be done if the terminal is gone.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}
