//! Finds the arguments that an interpreter runs as code.

use crate::model::Container;

/// A program that runs code from its command line.
struct Interpreter {
    names: &'static [&'static str],
    /// The letters of the options that code follows.
    code: &'static str,
    /// Those of the options that name the script or module to run.
    script: &'static str,
    /// Those of the options that another value follows.
    values: &'static str,
    /// Its scripts are files. An option that is not known may have a value, so a word after one is a script only if it
    /// looks like a file.
    runs_files: bool,
}

const INTERPRETERS: &[Interpreter] = &[
    Interpreter::of(&["sh", "bash", "dash", "ash", "zsh", "ksh"], "c", "", "oO"),
    Interpreter::of(&["fish"], "cC", "", ""),
    Interpreter::of(&["python", "pypy", "ipython"], "c", "m", "WX"),
    Interpreter::of(&["perl"], "eE", "", "I"),
    Interpreter::of(&["ruby"], "e", "", "CEIr"),
    Interpreter::of(
        &["node", "nodejs", "bun", "tsx", "ts-node", "deno"],
        "ep",
        "",
        "rC",
    ),
    Interpreter::of(&["php"], "rBRE", "fF", "cdSt"),
    Interpreter {
        runs_files: false,
        ..Interpreter::of(&["npx", "npm", "pnpm", "pnpx"], "c", "", "pw")
    },
];

/// The long options that code follows.
const CODE: &[&str] = &["eval", "print", "command", "init-command", "run", "call"];
/// Long options that a file, a package or an address follows.
const VALUES: &[&str] = &[
    "require",
    "import",
    "loader",
    "env-file",
    "tsconfig",
    "rcfile",
    "init-file",
    "package",
    "registry",
    "prefix",
];
/// Subcommands that options for code may follow.
const SUBCOMMANDS: &[&str] = &["exec", "x", "repl"];

/// The meaning of a word on the command line of an interpreter.
enum Word {
    Option {
        has_code: bool,
        has_value: bool,
    },
    /// An option after which only the arguments of a script follow.
    Script,
    Other,
}

impl Interpreter {
    const fn of(
        names: &'static [&'static str],
        code: &'static str,
        script: &'static str,
        values: &'static str,
    ) -> Self {
        Self {
            names,
            code,
            script,
            values,
            runs_files: true,
        }
    }

    fn read(&self, word: &str) -> Word {
        if let Some(long) = word.strip_prefix("--") {
            let name = long.split('=').next().unwrap_or_default();
            return Word::Option {
                has_code: CODE.contains(&name),
                has_value: VALUES.contains(&long),
            };
        }
        let letters = match word.strip_prefix(['-', '+']) {
            Some(letters) if !letters.is_empty() => letters,
            // `deno eval`
            _ if word == "eval" => {
                return Word::Option {
                    has_code: true,
                    has_value: false,
                };
            }
            _ => return Word::Other,
        };
        // Letters may be combined, and a value may follow them.
        let letters = letters.split(|letter: char| !letter.is_ascii_alphanumeric());
        let letters = letters.into_iter().next().unwrap_or_default();
        let is = |kind: &str| letters.contains(|letter| kind.contains(letter));
        let first =
            letters.find(|letter| self.code.contains(letter) || self.script.contains(letter));
        if first.is_some_and(|at| self.script.contains(&letters[at..=at])) {
            return Word::Script;
        }
        let has_code = is(self.code);
        Word::Option {
            has_code,
            has_value: has_code && is(self.values)
                || letters.ends_with(|letter| self.values.contains(letter)),
        }
    }

    /// Tests if an argument after these words is code.
    fn runs(&self, words: &[&str], argument: &str) -> bool {
        // Code, a value, or perhaps a value is expected.
        let (mut code, mut value, mut doubt) = (false, false, false);
        for word in words {
            match self.read(word) {
                Word::Script => return false,
                Word::Option {
                    has_code,
                    has_value,
                } => {
                    code |= has_code;
                    value = has_value;
                    doubt = !has_code && self.runs_files;
                }
                Word::Other if SUBCOMMANDS.contains(word) => {}
                Word::Other if value || doubt && !word.contains(['.', '/']) => {
                    (value, doubt) = (false, false);
                }
                // Some interpreters accept further options with code.
                Word::Other if code => code = false,
                // A script. Its arguments follow.
                Word::Other => return false,
            }
        }
        code || matches!(self.read(argument), Word::Option { has_code: true, .. })
    }
}

/// Tests if an argument of a command line is code: an interpreter comes before it with an option for code, and no
/// script. Doubtful arguments of an interpreter count as code.
pub(crate) fn is_in(command: &str, args: &[String], at: usize) -> bool {
    let words: Vec<&str> = std::iter::once(command)
        .chain(args.iter().map(String::as_str))
        .collect();
    // Shifted by the command.
    let (before, argument) = (&words[..=at], words[at + 1]);
    let mut interpreters = before.iter().enumerate().flat_map(|(place, word)| {
        let is_named = |known: &&Interpreter| is_program(word, known.names);
        let known = INTERPRETERS.iter().filter(is_named);
        known.map(move |known| (known, &before[place + 1..]))
    });
    interpreters.any(|(interpreter, words)| interpreter.runs(words, argument))
}

/// The program that a container runs with its arguments, as far as it is known: its entry point, or the interpreter
/// that its image is named after.
pub(crate) fn entry_point(container: &Container) -> &str {
    let mut words = container.run_args.iter();
    while let Some(word) = words.next() {
        if let Some(program) = word.strip_prefix("--entrypoint") {
            let following = || words.next().map(String::as_str);
            return program
                .strip_prefix('=')
                .or_else(following)
                .unwrap_or_default();
        }
    }
    let name = container.image.rsplit('/').next().unwrap_or_default();
    name.split([':', '@']).next().unwrap_or_default()
}

/// Tests if a word is the name or the path of one of these programs, perhaps with a version, such as `python3.12`.
pub(crate) fn is_program(word: &str, names: &[&str]) -> bool {
    let program = word.rsplit('/').next().unwrap_or_default();
    let name = program.trim_end_matches(|end: char| end.is_ascii_digit() || end == '.');
    names.contains(&name) || names.contains(&program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_follows_the_option_of_an_interpreter() {
        let is_code = |line: &str| {
            let mut words = line.split(' ');
            let command = words.next().unwrap();
            let args: Vec<String> = words.map(str::to_owned).collect();
            let at = args.iter().position(|arg| arg.contains('X')).unwrap();
            is_in(command, &args, at)
        };
        for code in [
            "sh -c X",
            "/bin/bash -lc X",
            "env A=b bash -euc X",
            "sh -ce X",
            "bash -cx X",
            "bash -c -x X",
            "bash -c -- X",
            "bash -c -o pipefail X",
            "bash -o pipefail -c X",
            "bash -euoc pipefail X",
            "python3.12 -c X",
            "python -W ignore -cX",
            "node --eval X",
            "node --eval=X",
            "node --title a -p X",
            "node -r ./a.js -e X",
            "perl -e code -eX",
            "uv run python -c X",
            "npx -c X",
            "npx -p a/b --call=X",
            "npm exec -c X",
            "deno eval --ext=ts X",
            "deno repl --eval X",
        ] {
            assert!(is_code(code), "{code}");
        }
        for plain in [
            "sh X",
            "sh -e X",
            "sh -c code X",
            "sh -c code sh X",
            "server -c X",
            "npx -y server -c X",
            "node server.js X",
            "node --no-warnings dist/server.js -p X",
            "node --import tsx server.ts -p X",
            "python -m server -c X",
            "python -um server -c X",
            "python server -c X",
            "php -S localhost:80 -t X",
            "deno run -A server.ts -e X",
            "bash-language-server -c X",
        ] {
            assert!(!is_code(plain), "{plain}");
        }
    }
}
