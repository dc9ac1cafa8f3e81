//! Asking before something is done.

use std::io::{self, IsTerminal as _};

use switchboard_terminal::{error::Error, print};

/// What is said when it is not done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asking {
    nothing: &'static str,
    /// What to do where there is nobody to ask.
    hint: &'static str,
}

/// Before a file is changed.
pub(super) const CHANGE: Asking = Asking {
    nothing: "nothing was changed",
    hint: "give --yes, or --dry-run to look only",
};

/// Before tools are approved.
pub(super) const APPROVE: Asking = Asking {
    nothing: "nothing was approved",
    hint: "give --yes to approve what is shown",
};

/// Before memories are forgotten.
#[cfg(feature = "memory")]
pub(super) const FORGET: Asking = Asking {
    nothing: "nothing was forgotten",
    hint: "give --yes to do it without being asked",
};

/// Before a damaged file is given up.
#[cfg(feature = "memory")]
pub(super) const DISCARD: Asking = Asking {
    nothing: "nothing was discarded",
    hint: "give --yes to do it without being asked",
};

impl Asking {
    /// Whether somebody can be asked, if that is needed: before work is done only to be able to ask.
    pub(super) fn check(self, yes: bool) -> Result<(), Error> {
        if yes || io::stdin().is_terminal() {
            return Ok(());
        }
        let message = format!("{}: there is nobody to ask", self.nothing);
        Err(Error::usage(message).hint(self.hint))
    }

    /// Goes on only with a yes.
    pub(super) fn agree(self, yes: bool, question: &str) -> Result<(), Error> {
        self.check(yes)?;
        if yes {
            return Ok(());
        }
        let agreed = print::confirm(question)
            .map_err(|error| Error::new(format!("cannot ask on the terminal: {error}")))?;
        if agreed {
            Ok(())
        } else {
            Err(Error::declined(self.nothing))
        }
    }
}
