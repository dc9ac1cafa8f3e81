//! Finds the arguments that an interpreter runs as code.

/// The beginnings of the names of interpreters, with the letters of the options that code follows.
const INTERPRETERS: &[(&str, &[char])] = &[
    ("sh", &['c']),
    ("bash", &['c']),
    ("dash", &['c']),
    ("ash", &['c']),
    ("zsh", &['c']),
    ("ksh", &['c']),
    ("fish", &['c']),
    ("python", &['c']),
    ("pypy", &['c']),
    ("perl", &['e', 'E']),
    ("ruby", &['e']),
    ("node", &['e', 'p']),
    ("bun", &['e', 'p']),
    ("php", &['r']),
];

/// Tests if an argument of a command line is code: it follows an option for code, after the name of an interpreter.
pub(crate) fn is_in(command: &str, args: &[String], at: usize) -> bool {
    let words: Vec<&str> = std::iter::once(command)
        .chain(args.iter().map(String::as_str))
        .collect();
    // Shifted by the command.
    let (before, option) = (&words[..at], words[at]);
    let takes_code = |word: &&str| {
        let name = word.rsplit('/').next().unwrap_or_default();
        let letters = INTERPRETERS.iter().find(|(interpreter, _)| {
            let rest = name.strip_prefix(interpreter);
            rest.is_some_and(|rest| {
                rest.bytes()
                    .all(|byte| byte.is_ascii_digit() || byte == b'.')
            })
        });
        letters.is_some_and(|(_, letters)| is_option(option, letters))
    };
    at > 0 && before.iter().any(takes_code)
}

/// Tests if a word is an option for code, alone or together with others: `-c`, `-lc`, `--eval`, `--print`, `--command`.
fn is_option(word: &str, letters: &[char]) -> bool {
    match word.strip_prefix("--") {
        Some(long) => matches!(long, "eval" | "print" | "command" | "run"),
        None => word
            .strip_prefix('-')
            .is_some_and(|short| short.ends_with(letters)),
    }
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
            let at = args.iter().position(|arg| arg == "X").unwrap();
            is_in(command, &args, at)
        };
        for code in [
            "sh -c X",
            "/bin/bash -lc X",
            "env A=b bash -euc X",
            "python3.12 -c X",
            "node --eval X",
            "uv run python -c X",
        ] {
            assert!(is_code(code), "{code}");
        }
        for plain in [
            "sh X",
            "sh -c code X",
            "server -c X",
            "npx -y server -c X",
            "node server.js X",
            "bash-language-server -c X",
        ] {
            assert!(!is_code(plain), "{plain}");
        }
    }
}
