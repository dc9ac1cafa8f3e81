//! Single key presses, read without waiting for the end of a line. The terminal is restored on drop.

use std::io::{self, PipeReader, Read as _};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr},
};

/// A terminal that delivers each key at once.
#[derive(Debug)]
pub(super) struct Keys {
    before: Termios,
}

/// The event that ended a wait.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Woken {
    /// A key was pressed.
    Key(u8),
    /// Standard input has ended.
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
        // Ctrl-C also arrives as a key, so that the terminal is restored before the program exits.
        now.local_modes
            .remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        now.special_codes[SpecialCodeIndex::VMIN] = 1;
        now.special_codes[SpecialCodeIndex::VTIME] = 0;
        Ok(tcsetattr(io::stdin(), OptionalActions::Now, &now)?)
    }

    /// Runs `work`, which reads lines. Keys pressed before it are discarded, so that they do not answer its
    /// questions.
    pub(super) fn paused<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        tcsetattr(io::stdin(), OptionalActions::Flush, &self.before)?;
        let done = work();
        self.listen()?;
        Ok(done)
    }

    /// Waits for a key or the bell.
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
        // The bell comes before the key: the key may be meant for a request that is no longer pending.
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
        // If the terminal is gone, there is nothing to restore.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}
