//! Errors of tokens.

use std::borrow::Cow;

use crate::{NAME_BYTES, PREFIX};

/// The reason why a token is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// No such token exists.
    #[error("the token is unknown: it is wrong, or was revoked or rotated")]
    Unknown,
    /// It was valid.
    #[error("the token has expired")]
    Expired,
}

/// The reason why tokens cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The name is unfit.
    #[error(
        "a token's name has 1 to {NAME_BYTES} letters, digits, `-`, `_` or `.`, begins with a letter or digit, and not with `{PREFIX}`"
    )]
    Name,
    /// Another token has the name.
    #[error("there is already a token `{0}`")]
    Taken(String),
    /// No token has the name.
    #[error("there is no token `{0}`")]
    Missing(String),
    /// There are too many tokens.
    #[error("there are already {0} tokens, which is the limit")]
    TooMany(usize),
    /// There are too many servers.
    #[error("a token can have at most {0} servers")]
    TooManyServers(usize),
    /// The directory is unfit.
    #[error("a token's project must be the absolute path of a directory")]
    Project,
    /// No profile has the name; another one resembles it.
    #[error("there is no profile `{0}`")]
    NoProfile(String, Option<String>),
    /// No server has the name; another one resembles it.
    #[error("there is no server `{0}`")]
    NoServer(String, Option<String>),
    /// It would permit nothing.
    #[error("a token needs a right")]
    NoRight,
    /// It would only seem limited.
    #[error(
        "a token with the right `admin` cannot be held to a profile or to servers, because it can change them"
    )]
    LimitedAdmin,
    /// The lifetime is zero or too long.
    #[error("a token's lifetime must be more than zero and at most 100 years")]
    Lifetime,
    /// The system provides no random numbers.
    #[error("the system provides no random numbers")]
    Random,
}

impl TokenError {
    /// Advice for the user, apart from the message.
    pub fn hint(&self) -> Option<Cow<'static, str>> {
        Some(match self {
            Self::Name | Self::Lifetime | Self::Project => return None,
            Self::Taken(name) => {
                format!("choose another name, or replace it with `switchboard token rotate {name}`")
                    .into()
            }
            Self::Missing(_) => "`switchboard token list` lists the tokens".into(),
            Self::TooMany(_) => {
                "remove one that is not used with `switchboard token revoke NAME`".into()
            }
            Self::TooManyServers(_) => "use a profile with a pattern in `servers`".into(),
            Self::NoProfile(_, Some(near)) | Self::NoServer(_, Some(near)) => {
                format!("did you mean `{near}`?").into()
            }
            Self::NoProfile(..) => "`profiles` in switchboard.json lists the profiles".into(),
            Self::NoServer(..) => "`switchboard list` lists the servers".into(),
            Self::NoRight => "name one of `call`, `approve` and `admin`".into(),
            Self::LimitedAdmin => "create two tokens".into(),
            Self::Random => "try again".into(),
        })
    }
}
