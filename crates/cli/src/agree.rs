//! Confirmation by the user before an action.

use std::io::{self, IsTerminal as _};

use switchboard_terminal::{error::Error, print};

/// The messages for an action that the user has to confirm.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asking {
    nothing: &'static str,
    /// Advice if there is no terminal to ask on.
    hint: &'static str,
}

/// Confirmation before a file is changed.
pub(super) const CHANGE: Asking = Asking {
    nothing: "nothing was changed",
    hint: "use --yes to confirm, or --dry-run to preview the changes",
};

/// Confirmation before tools are approved.
pub(super) const APPROVE: Asking = Asking {
    nothing: "nothing was approved",
    hint: "use --yes to approve without confirmation",
};

/// Confirmation before memories are deleted.
#[cfg(feature = "memory")]
pub(super) const FORGET: Asking = Asking {
    nothing: "nothing was deleted",
    hint: "use --yes to skip the confirmation",
};

/// Confirmation before a damaged file is discarded.
#[cfg(feature = "memory")]
pub(super) const DISCARD: Asking = Asking {
    nothing: "nothing was discarded",
    hint: "use --yes to skip the confirmation",
};

impl Asking {
    /// Fails if the user has to be asked but cannot be. Call it before work that only prepares the question.
    pub(super) fn check(self, yes: bool) -> Result<(), Error> {
        if yes || io::stdin().is_terminal() {
            return Ok(());
        }
        let message = format!(
            "{}: cannot ask for confirmation, because standard input is not a terminal",
            self.nothing
        );
        Err(Error::usage(message).hint(self.hint))
    }

    /// Asks `question` and fails unless the user agrees.
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
