//! Asking before something is done.

use std::io::{self, IsTerminal as _};

use crate::{failure::Failure, print};

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

impl Asking {
    /// Goes on only with a yes.
    pub(super) fn agree(self, yes: bool, question: &str) -> Result<(), Failure> {
        if yes {
            return Ok(());
        }
        let nothing = self.nothing;
        if !io::stdin().is_terminal() {
            let message = format!("{nothing}: there is nobody to ask");
            return Err(Failure::usage(message).hint(self.hint));
        }
        let agreed = print::confirm(question)
            .map_err(|error| Failure::new(format!("cannot ask on the terminal: {error}")))?;
        if agreed {
            Ok(())
        } else {
            Err(Failure::new(nothing))
        }
    }
}
