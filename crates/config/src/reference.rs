//! References in strings: `${env:NAME}` and `${secret:NAME}`, and in the entry of a server `${project}`,
//! `${project.name}` and `${client}`; `$${` is a literal `${`.

use std::ops::Range;

use switchboard_text::nearest;

use crate::json::quote;
use crate::secret::is_pasted_value;

/// The longest name of a secret, in bytes. It is also a file name.
const SECRET_NAME_MAX: usize = 128;

/// A piece of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// Literal text.
    Plain(&'a str),
    /// A variable of the gateway's environment.
    Env(&'a str),
    /// A file in the directory of secrets.
    Secret(&'a str),
    /// A fact about the caller.
    Caller(Placeholder),
}

/// A fact about the caller that the entry of a server may refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placeholder {
    /// The directory that the client works in.
    Project,
    /// The last component of that directory.
    ProjectName,
    /// The name that the client gives itself.
    Client,
}

impl Placeholder {
    const ALL: [Self; 3] = [Self::Project, Self::ProjectName, Self::Client];

    /// The reference, as it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Project => "${project}",
            Self::ProjectName => "${project.name}",
            Self::Client => "${client}",
        }
    }

    /// The name in a reference.
    fn name(self) -> &'static str {
        let written = self.as_str();
        &written["${".len()..written.len() - 1]
    }

    fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }
}

/// A `${` that does not start a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    pub(crate) message: String,
    pub(crate) hint: String,
}

/// Splits a string into its pieces.
pub(crate) fn pieces(text: &str) -> Result<Vec<Piece<'_>>, Malformed> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            // The first dollar sign escapes the second.
            pieces.push(Piece::Plain(&rest[..at - 1]));
            pieces.push(Piece::Plain("${"));
            rest = &rest[at + 2..];
            continue;
        }
        pieces.push(Piece::Plain(&rest[..at]));
        let inside = &rest[at + 2..];
        let Some(end) = inside.find('}') else {
            return Err(Malformed {
                message: "a ${ in this string has no closing }".to_owned(),
                hint: "add the }, or write $${ for a literal ${".to_owned(),
            });
        };
        pieces.push(reference(&inside[..end])?);
        rest = &inside[end + 1..];
    }
    pieces.push(Piece::Plain(rest));
    Ok(pieces)
}

/// The byte ranges of the references in a string.
pub(crate) fn ranges(text: &str) -> Result<Vec<Range<usize>>, Malformed> {
    let mut at = 0;
    let mut ranges = Vec::new();
    for piece in pieces(text)? {
        let start = at;
        at += match piece {
            // Literal `${` occurs only escaped, so its source is one byte longer.
            Piece::Plain("${") => "$${".len(),
            Piece::Plain(plain) => plain.len(),
            Piece::Env(name) => "${env:}".len() + name.len(),
            Piece::Secret(name) => "${secret:}".len() + name.len(),
            Piece::Caller(placeholder) => placeholder.as_str().len(),
        };
        if !matches!(piece, Piece::Plain(_)) {
            ranges.push(start..at);
        }
    }
    Ok(ranges)
}

fn reference(inside: &str) -> Result<Piece<'_>, Malformed> {
    if let Some(placeholder) = Placeholder::parse(inside) {
        return Ok(Piece::Caller(placeholder));
    }
    match inside.split_once(':') {
        Some(("env", name)) if is_variable_name(name) => Ok(Piece::Env(name)),
        Some(("secret", name)) if is_secret_name(name) => Ok(Piece::Secret(name)),
        Some(("env", name)) => Err(Malformed {
            message: format!("{} is not a valid variable name", quote(name)),
            hint: "write ${env:NAME}".to_owned(),
        }),
        Some(("secret", name)) => Err(Malformed {
            message: format!("{} is not a valid name for a secret", quote(name)),
            hint: format!(
                "use up to {SECRET_NAME_MAX} letters, digits, _, - and dots, with no dot at the \
                 start"
            ),
        }),
        _ => {
            let shown = quote(&format!("${{{inside}}}"));
            let placeholders = Placeholder::ALL.map(Placeholder::name);
            if let Some(meant) = nearest(inside, placeholders) {
                return Err(Malformed {
                    message: format!("unknown reference {shown}"),
                    hint: format!("did you mean ${{{meant}}}?"),
                });
            }
            let name = inside.rsplit(':').next().unwrap_or_default();
            let is_name = is_secret_name(name) && !is_pasted_value(name);
            let name = if is_name { name } else { "NAME" };
            Err(Malformed {
                message: format!("unknown reference {shown}"),
                hint: format!(
                    "write ${{env:{name}}} for a variable, ${{secret:{name}}} for a secret, or \
                     $${{ for a literal ${{"
                ),
            })
        }
    }
}

/// Tests if the system accepts a variable name; shells are stricter.
fn is_variable_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

/// Returns `true` if a secret can have this name, which stays inside its directory on every system.
pub fn is_secret_name(name: &str) -> bool {
    (1..=SECRET_NAME_MAX).contains(&name.len())
        && !name.starts_with('.')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_split_into_pieces() {
        use Piece::{Caller, Env, Plain, Secret};
        for (text, expected) in [
            ("", vec![]),
            ("plain $HOME $ {x} $$", vec![Plain("plain $HOME $ {x} $$")]),
            ("${env:A}", vec![Env("A")]),
            (
                "a${env:A}b${secret:s-1.key}",
                vec![Plain("a"), Env("A"), Plain("b"), Secret("s-1.key")],
            ),
            ("$${env:A}", vec![Plain("${"), Plain("env:A}")]),
            ("$$${env:A}", vec![Plain("$"), Plain("${"), Plain("env:A}")]),
            ("$${${env:A}", vec![Plain("${"), Env("A")]),
            (
                "${project}/${project.name}-${client}",
                vec![
                    Caller(Placeholder::Project),
                    Plain("/"),
                    Caller(Placeholder::ProjectName),
                    Plain("-"),
                    Caller(Placeholder::Client),
                ],
            ),
        ] {
            let mut found = pieces(text).unwrap();
            found.retain(|piece| *piece != Plain(""));
            assert_eq!(found, expected, "{text:?}");
            let places = ranges(text).unwrap().into_iter();
            let places: Vec<_> = places.map(|range| &text[range]).collect();
            let spelled = expected.iter().filter_map(|piece| match piece {
                Plain(_) => None,
                Env(name) => Some(format!("${{env:{name}}}")),
                Secret(name) => Some(format!("${{secret:{name}}}")),
                Caller(placeholder) => Some(placeholder.as_str().to_owned()),
            });
            assert_eq!(places, spelled.collect::<Vec<_>>(), "{text:?}");
        }
    }

    #[test]
    fn refused() {
        for (text, message) in [
            ("${env:A", "a ${ in this string has no closing }"),
            ("${env:}", "\"\" is not a valid variable name"),
            ("${env:A=B}", "\"A=B\" is not a valid variable name"),
            (
                "${secret:../token}",
                "\"../token\" is not a valid name for a secret",
            ),
            (
                "${secret:.hidden}",
                "\".hidden\" is not a valid name for a secret",
            ),
            ("${HOME}", "unknown reference \"${HOME}\""),
            ("${input:key}", "unknown reference \"${input:key}\""),
            ("${}", "unknown reference \"${}\""),
        ] {
            assert_eq!(pieces(text).unwrap_err().message, message, "{text:?}");
        }
        assert_eq!(
            pieces("${input:key}").unwrap_err().hint,
            "write ${env:key} for a variable, ${secret:key} for a secret, or $${ for a literal ${"
        );
        for (typo, hint) in [
            ("${projct}", "did you mean ${project}?"),
            ("${project.nme}", "did you mean ${project.name}?"),
            ("${Client}", "did you mean ${client}?"),
        ] {
            assert_eq!(pieces(typo).unwrap_err().hint, hint, "{typo:?}");
        }
    }
}
