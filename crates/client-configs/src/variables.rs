//! Translates variables in a client's strings to Switchboard's syntax: `${env:NAME}`, `${secret:NAME}`, `${project}`,
//! and `$${` for a literal `${`.

/// The most characters of a secret's name and of its server's name. Together they stay below 128.
const NAME_LETTERS: usize = 80;
const OWNER_LETTERS: usize = 40;

/// The directory that a client works in.
pub(crate) const PROJECT: &str = "${project}";
/// The variable in which Claude Code has that directory.
const PROJECT_VARIABLE: &str = "CLAUDE_PROJECT_DIR";

/// The syntax of a client's variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variables {
    /// None: strings are literal.
    None,
    /// `${env:NAME}`, `${input:name}`, `${userHome}`, `${workspaceFolder}`.
    Editor,
    /// `${NAME}`, `${NAME:-default}`.
    Braces,
    /// Those of `Braces`, and `$NAME`.
    Dollar,
    /// `{env:NAME}`, `{file:path}`.
    OpenCode,
    /// The client is unknown: all forms that begin with `${`.
    Any,
}

/// Translates the variables in the strings of one server, and collects notes for the user.
#[derive(Debug)]
pub(crate) struct Translator {
    pub(crate) variables: Variables,
    /// The server, if its file belongs to a repository. The names of its secrets begin with it and have
    /// a dot, which the secrets of other servers never have.
    pub(crate) owner: Option<String>,
    pub(crate) notes: Vec<String>,
    /// The first note on a part that has no counterpart.
    pub(crate) gap: Option<String>,
}

impl Translator {
    /// Notes a part that has no counterpart.
    pub(crate) fn lose(&mut self, note: String) {
        self.gap.get_or_insert_with(|| note.clone());
        self.notes.push(note);
    }

    /// Translates a string.
    pub(crate) fn translate(&mut self, text: &str) -> String {
        let mut result = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(['$', '{']) {
            result.push_str(&rest[..at]);
            rest = &rest[at..];
            let length = self.one(rest, &mut result);
            rest = &rest[length..];
        }
        result.push_str(rest);
        result
    }

    /// Translates the `$` or `{` at the start of `text`, and returns the number of bytes consumed.
    fn one(&mut self, text: &str, result: &mut String) -> usize {
        let variables = self.variables;
        if let Some(inside) = enclosed(text, "${") {
            if let Some(meaning) = self.meaning(inside) {
                result.push_str(&meaning);
            } else {
                if variables != Variables::None && variables != Variables::OpenCode {
                    self.lose(format!(
                        "`${{{inside}}}` is not a known variable; it stays literal text"
                    ));
                }
                result.push_str("$${");
                result.push_str(inside);
                result.push('}');
            }
            return inside.len() + 3;
        }
        if text.starts_with("${") {
            // It is never closed, so it is literal text.
            result.push_str("$${");
            return 2;
        }
        if variables == Variables::OpenCode
            && let Some(inside) = enclosed(text, "{")
        {
            match inside.split_once(':') {
                Some(("env", name)) if is_name(name) => result.push_str(&env(name)),
                Some(("file", path)) => {
                    let name = self.secret_name(path);
                    self.notes.push(format!(
                        "the content of the file {path} becomes ${{secret:{name}}}; store it with \
                         `switchboard secret set {name}`"
                    ));
                    result.push_str(&secret(&name));
                }
                _ => {
                    // The rest may contain variables.
                    result.push('{');
                    return 1;
                }
            }
            return inside.len() + 2;
        }
        if variables == Variables::Dollar && text.starts_with('$') {
            let name = text[1..]
                .split(|letter: char| !(letter == '_' || letter.is_ascii_alphanumeric()))
                .next()
                .unwrap_or_default();
            if is_name(name) {
                result.push_str(&env(name));
                return name.len() + 1;
            }
        }
        let first = text.chars().next().map_or(1, char::len_utf8);
        result.push_str(&text[..first]);
        first
    }

    /// The translation of `${inside}`.
    fn meaning(&mut self, inside: &str) -> Option<String> {
        use Variables::{Any, Braces, Dollar, Editor};
        let editor = matches!(self.variables, Editor | Any);
        let braces = matches!(self.variables, Braces | Dollar | Any);
        match inside.split_once(':') {
            Some(("env", name)) if editor && is_name(name) => Some(env(name)),
            // The text may already be in Switchboard's syntax.
            Some(("secret", name)) if self.variables == Any && self.owner.is_none() => {
                Some(secret(name))
            }
            Some((kind @ ("input" | "secret"), id))
                if editor && (kind == "input" || self.variables == Any) =>
            {
                let name = self.secret_name(id);
                self.notes.push(format!(
                    "`${{{kind}:{id}}}` becomes ${{secret:{name}}}; store it with `switchboard \
                     secret set {name}`"
                ));
                Some(secret(&name))
            }
            Some((PROJECT_VARIABLE, default)) if braces && default.starts_with('-') => {
                Some(PROJECT.to_owned())
            }
            Some((name, default)) if braces && is_name(name) && default.starts_with('-') => {
                self.lose(format!(
                    "the default value `{}` of {name} is not imported; set {name}",
                    &default[1..]
                ));
                Some(env(name))
            }
            None if editor && inside == "userHome" => {
                Some(env(if cfg!(windows) { "USERPROFILE" } else { "HOME" }))
            }
            None if editor && inside == "workspaceFolder" => Some(PROJECT.to_owned()),
            None if editor && inside == "workspaceFolderBasename" => {
                Some("${project.name}".to_owned())
            }
            None if braces && inside == PROJECT_VARIABLE => Some(PROJECT.to_owned()),
            // The text may already be in Switchboard's syntax.
            None if self.variables == Any
                && matches!(inside, "project" | "project.name" | "client") =>
            {
                Some(format!("${{{inside}}}"))
            }
            None if braces && is_name(inside) => Some(env(inside)),
            _ => None,
        }
    }

    /// A valid name for a secret, derived from the given one.
    fn secret_name(&self, given: &str) -> String {
        let name = allowed(given, NAME_LETTERS);
        match &self.owner {
            Some(owner) => format!("{}.{name}", allowed(owner, OWNER_LETTERS)),
            None => name,
        }
    }
}

fn enclosed<'a>(text: &'a str, opening: &str) -> Option<&'a str> {
    let inside = text.strip_prefix(opening)?;
    Some(&inside[..inside.find('}')?])
}

pub(crate) fn env(name: &str) -> String {
    format!("${{env:{name}}}")
}

fn secret(name: &str) -> String {
    format!("${{secret:{name}}}")
}

pub(crate) fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    letters
        .next()
        .is_some_and(|first| first == '_' || first.is_ascii_alphabetic())
        && letters.all(|letter| letter == '_' || letter.is_ascii_alphanumeric())
}

/// The valid characters of a part of a secret's name.
fn allowed(given: &str, letters: usize) -> String {
    let name: String = given
        .chars()
        .take(letters)
        .map(|letter| match letter {
            '_' | '-' => letter,
            other if other.is_ascii_alphanumeric() => other,
            _ => '-',
        })
        .collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "unnamed" } else { name }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_translated() {
        for (variables, text, expected, notes) in [
            (
                Variables::None,
                "a ${X} $Y {env:Z} $",
                "a $${X} $Y {env:Z} $",
                0,
            ),
            (
                Variables::Editor,
                "${env:A}/${userHome}",
                "${env:A}/${env:HOME}",
                0,
            ),
            (Variables::Editor, "${input:my key}", "${secret:my-key}", 1),
            (
                Variables::Editor,
                "${workspaceFolder}/x ${workspaceFolderBasename} ${file}",
                "${project}/x ${project.name} $${file}",
                1,
            ),
            (
                Variables::Braces,
                "${CLAUDE_PROJECT_DIR}/x ${CLAUDE_PROJECT_DIR:-.} ${project}",
                "${project}/x ${project} ${env:project}",
                0,
            ),
            (
                Variables::Any,
                "${project.name} ${client}",
                "${project.name} ${client}",
                0,
            ),
            (
                Variables::Braces,
                "Bearer ${TOKEN}",
                "Bearer ${env:TOKEN}",
                0,
            ),
            (Variables::Braces, "${URL:-http://a}", "${env:URL}", 1),
            (Variables::Braces, "$HOME", "$HOME", 0),
            (Variables::Dollar, "$A-${B}$", "${env:A}-${env:B}$", 0),
            (
                Variables::OpenCode,
                "{env:A} {file:~/k} {x} ${B}",
                "${env:A} ${secret:k} {x} $${B}",
                1,
            ),
            (
                Variables::Any,
                "${env:A}${input:b}${C}",
                "${env:A}${secret:b}${env:C}",
                1,
            ),
            (Variables::Any, "${ü} ${open", "$${ü} $${open", 1),
        ] {
            let mut translator = translator(variables, None);
            assert_eq!(translator.translate(text), expected, "{text}");
            assert_eq!(translator.notes.len(), notes, "{:?}", translator.notes);
        }
    }

    fn translator(variables: Variables, owner: Option<&str>) -> Translator {
        Translator {
            variables,
            owner: owner.map(str::to_owned),
            notes: Vec::new(),
            gap: None,
        }
    }

    #[test]
    fn secrets_of_projects_have_prefixed_names() {
        for (variables, text, expected) in [
            (
                Variables::Editor,
                "${input:git-key}",
                "${secret:a-b.git-key}",
            ),
            (Variables::OpenCode, "{file:~/.k}", "${secret:a-b.k}"),
            (Variables::Any, "${secret:x.y}", "${secret:a-b.x-y}"),
            (Variables::Any, "${secret:${x}", "${secret:a-b.x}"),
        ] {
            let mut translator = translator(variables, Some("a.b"));
            assert_eq!(translator.translate(text), expected);
            assert_eq!(translator.notes.len(), 1, "{text}");
        }
        let mut long = translator(Variables::Editor, Some(&"o".repeat(500)));
        let long = long.translate(&format!("${{input:{}}}", "n".repeat(500)));
        assert!(long.len() < 128 + "${secret:}".len(), "{long}");
    }
}
