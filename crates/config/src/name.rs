//! Names of servers.

use std::borrow::Cow;

/// The longest name, in characters.
const NAME_MAX: usize = 64;

/// The name under which the gateway offers its own tools.
const RESERVED: &str = "switchboard";

/// The reason why a name is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The name is empty.
    #[error("a server's name is empty")]
    Empty,
    /// The name is too long.
    #[error("a server's name has more than {NAME_MAX} characters")]
    TooLong,
    /// The name has a character that would break URLs or logs.
    #[error("a server's name may not contain / or control characters")]
    Character,
    /// The name is a relative path segment in URLs.
    #[error("a server cannot be named . or ..")]
    Dots,
    /// The name is reserved for the gateway.
    #[error("a server cannot be named {RESERVED}, which is reserved for the gateway's own tools")]
    Reserved,
}

impl NameError {
    /// A hint for the user, separate from the message.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::Empty => "choose a name".into(),
            Self::TooLong => "choose a shorter name".into(),
            Self::Character => "remove these characters".into(),
            Self::Dots | Self::Reserved => "choose another name".into(),
        })
    }
}

/// Checks the name of a server: 1 to 64 characters, no control characters, no `/`, neither `.` nor `..`,
/// which are path segments in URLs, and not `switchboard`, which is the gateway itself.
pub(crate) fn check_server_name(name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        Err(NameError::Empty)
    } else if name.chars().nth(NAME_MAX).is_some() {
        Err(NameError::TooLong)
    } else if name.contains(|character: char| character == '/' || character.is_control()) {
        Err(NameError::Character)
    } else if matches!(name, "." | "..") {
        Err(NameError::Dots)
    } else if name == RESERVED {
        Err(NameError::Reserved)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let long = "ü".repeat(64);
        let too_long = "ü".repeat(65);
        for (name, expected) in [
            ("a", Ok(())),
            ("My server: 1%", Ok(())),
            (long.as_str(), Ok(())),
            ("", Err(NameError::Empty)),
            (too_long.as_str(), Err(NameError::TooLong)),
            ("a/b", Err(NameError::Character)),
            ("a\nb", Err(NameError::Character)),
            ("a\u{85}b", Err(NameError::Character)),
            ("..", Err(NameError::Dots)),
            ("switchboard", Err(NameError::Reserved)),
            ("switchboard2", Ok(())),
        ] {
            assert_eq!(check_server_name(name), expected, "{name:?}");
        }
    }
}
