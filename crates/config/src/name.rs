//! Names of servers and profiles.

use std::borrow::Cow;

/// The longest name, in characters.
const NAME_MAX: usize = 64;

/// The name under which the gateway offers its own tools.
const RESERVED: &str = "switchboard";

/// A name that is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a {thing}'s name {reason}")]
pub struct NameError {
    thing: &'static str,
    reason: Reason,
}

/// The reason why a name is invalid. It follows "a server's name".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Reason {
    #[error("is empty")]
    Empty,
    #[error("has more than {NAME_MAX} characters")]
    TooLong,
    /// It has a character that would break URLs or logs.
    #[error("may not contain / or control characters")]
    Character,
    /// It is a relative path segment in URLs.
    #[error("cannot be . or ..")]
    Dots,
    #[error("cannot be {RESERVED}, which is reserved for the gateway's own tools")]
    Reserved,
}

impl NameError {
    /// A hint for the user, separate from the message.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        Some(match self.reason {
            Reason::Empty => "choose a name".into(),
            Reason::TooLong => "choose a shorter name".into(),
            Reason::Character => "remove these characters".into(),
            Reason::Dots | Reason::Reserved => "choose another name".into(),
        })
    }
}

/// Checks the name of a server: that of a profile, and not `switchboard`, which is the gateway itself.
pub(crate) fn check_server_name(name: &str) -> Result<(), NameError> {
    if name == RESERVED {
        let reason = Reason::Reserved;
        return Err(NameError {
            thing: "server",
            reason,
        });
    }
    check("server", name)
}

/// Checks the name of a profile: 1 to 64 characters, no control characters, no `/`, neither `.` nor `..`, which
/// are path segments in URLs.
pub(crate) fn check_profile_name(name: &str) -> Result<(), NameError> {
    check("profile", name)
}

fn check(thing: &'static str, name: &str) -> Result<(), NameError> {
    let reason = if name.is_empty() {
        Reason::Empty
    } else if name.chars().nth(NAME_MAX).is_some() {
        Reason::TooLong
    } else if name.contains(|character: char| character == '/' || character.is_control()) {
        Reason::Character
    } else if matches!(name, "." | "..") {
        Reason::Dots
    } else {
        return Ok(());
    };
    Err(NameError { thing, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let long = "ü".repeat(64);
        let too_long = "ü".repeat(65);
        for (name, expected) in [
            ("a", None),
            ("My server: 1%", None),
            (long.as_str(), None),
            ("", Some(Reason::Empty)),
            (too_long.as_str(), Some(Reason::TooLong)),
            ("a/b", Some(Reason::Character)),
            ("a\nb", Some(Reason::Character)),
            ("a\u{85}b", Some(Reason::Character)),
            ("..", Some(Reason::Dots)),
            ("switchboard2", None),
        ] {
            let reason = |checked: Result<(), NameError>| checked.err().map(|error| error.reason);
            assert_eq!(reason(check_server_name(name)), expected, "{name:?}");
            assert_eq!(reason(check_profile_name(name)), expected, "{name:?}");
        }
        let reserved = check_server_name("switchboard").unwrap_err();
        assert_eq!(reserved.reason, Reason::Reserved);
        assert!(check_profile_name("switchboard").is_ok());
    }
}
