//! Finds the line of standard error that explains the end of a server.
//!
//! The last lines of a failed program are often the rest of a stack trace or of a printed object. The reason
//! precedes them.

/// The likelihood that a line is a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    /// A stack frame, punctuation, or anything else.
    Nothing,
    /// A word of failure somewhere in the line.
    Mention,
    /// A log line of level error, or a well-known cause.
    Cause,
    /// A named error, such as `ValueError: …` or `error: …`.
    Error,
}

/// The most lines after a reason that may belong to it.
const MORE_LINES: usize = 2;

/// The names of system errors that programs print.
const SYSTEM_ERRORS: [&str; 11] = [
    "EACCES",
    "EADDRINUSE",
    "EAI_AGAIN",
    "ECONNREFUSED",
    "ECONNRESET",
    "EHOSTUNREACH",
    "ENETUNREACH",
    "ENOENT",
    "ENOTFOUND",
    "EPERM",
    "ETIMEDOUT",
];

const CAUSES: [&str; 13] = [
    "not found",
    "no such file",
    "no module named",
    "cannot find",
    "could not find",
    "permission denied",
    "connection refused",
    "panicked at",
    "segmentation fault",
    "out of memory",
    "is not set",
    "must be set",
    "is required",
];

const MENTIONS: [&str; 9] = [
    "error",
    "fail",
    "exception",
    "denied",
    "refused",
    "missing",
    "invalid",
    "unable",
    "cannot",
];

/// The line that most likely is the reason, and the lines that belong to it; `None` if there is none.
pub(super) fn telling<'a>(lines: &[&'a str]) -> Option<Vec<&'a str>> {
    let weighed = lines.iter().map(|line| weight(line)).enumerate();
    // The last of equal weight: programs wrap errors, and print the outermost one last.
    let (at, weight) = weighed.max_by_key(|(_, weight)| *weight)?;
    if weight == Weight::Nothing {
        return None;
    }
    let more = lines[at + 1..].iter();
    let more = more.take_while(|line| !line.starts_with(char::is_whitespace) && !is_noise(line));
    let all = [lines[at]]
        .into_iter()
        .chain(more.take(MORE_LINES).copied());
    Some(all.map(str::trim).collect())
}

/// Tests if a line contains any text.
pub(super) fn says_something(line: &str) -> bool {
    line.contains(char::is_alphanumeric)
}

fn weight(line: &str) -> Weight {
    let text = undrawn(line);
    let is_indented = text.starts_with(char::is_whitespace);
    let text = text.trim();
    if is_noise(text) {
        return Weight::Nothing;
    }
    let lower = text.to_lowercase();
    let has_cause = CAUSES.iter().any(|cause| lower.contains(cause))
        || SYSTEM_ERRORS.iter().any(|name| text.contains(name));
    if !is_indented && is_named(text) {
        Weight::Error
    } else if !is_indented && (has_cause || is_logged(text)) {
        Weight::Cause
    } else if has_cause || MENTIONS.iter().any(|word| lower.contains(word)) {
        Weight::Mention
    } else {
        Weight::Nothing
    }
}

/// A line without the characters that exception groups are drawn with.
fn undrawn(line: &str) -> &str {
    match line.trim_start() {
        drawn if drawn.starts_with(['|', '+', '│', '╰', '×']) => {
            drawn.trim_start_matches(|c: char| !c.is_alphanumeric())
        }
        _ => line,
    }
}

/// Tests if a line gives a location rather than a reason.
fn is_noise(text: &str) -> bool {
    let text = text.trim();
    let places = [
        "at ",
        "File \"",
        "Traceback (",
        "Node.js v",
        "node:internal",
    ];
    !says_something(text)
        || places.iter().any(|place| text.starts_with(place))
        || text.contains("complete log of this run")
}

/// Tests if a line begins with the name of an error: `Error: …`, `a.b.ValueError: …`, `program: error: …`.
fn is_named(text: &str) -> bool {
    let is_name = |word: &str| {
        let word = word.trim_end_matches(|c: char| !c.is_alphanumeric());
        let is_shouted = word.chars().all(char::is_uppercase);
        let ends = ["error", "exception", "fatal", "panic"];
        let lower = word.to_lowercase();
        !is_shouted && ends.iter().any(|end| lower.ends_with(end))
    };
    // `program: error: …` has it in the second part.
    let mut heads = text.split(": ").take(2);
    let words = heads
        .clone()
        .next()
        .and_then(|head| head.split_whitespace().next());
    words.is_some_and(is_name)
        || heads.any(|head| head.split_whitespace().next_back().is_some_and(is_name))
            && text.contains(':')
}

/// Tests if this is a log line of an error level.
fn is_logged(text: &str) -> bool {
    let words = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    let mut words = words.take(12);
    words.any(|word| matches!(word, "ERROR" | "FATAL" | "CRITICAL"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(lines: &str, expected: &str) {
        let lines: Vec<_> = lines.lines().collect();
        let told = telling(&lines).map(|told| told.join(" | "));
        assert_eq!(told.unwrap_or_default(), expected);
    }

    #[test]
    fn node_error_is_found_above_its_properties() {
        check(
            "node:internal/process/promises:394\n    triggerUncaughtException(err, true);\n    ^\n\n\
             Error: getaddrinfo ENOTFOUND mcp.stripe.com\n    at GetAddrInfoReqWrap.onlookupall (node:dns:122:26) {\n  \
             errno: -3008,\n  code: 'ENOTFOUND',\n  hostname: 'mcp.stripe.com'\n}\n\nNode.js v22.1.0",
            "Error: getaddrinfo ENOTFOUND mcp.stripe.com",
        );
        check(
            "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'x'\n  requireStack: [\n    '/a/b.js'\n  ]\n}",
            "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'x'",
        );
    }

    #[test]
    fn python_exception_is_the_last_one_raised() {
        check(
            "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    import x\n\
             KeyError: 'first'\n\nDuring handling of the above exception, another exception occurred:\n\n\
             Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n\
             a.b.ConfigError: API_KEY is not set",
            "a.b.ConfigError: API_KEY is not set",
        );
        check(
            "  + Exception Group Traceback (most recent call last):\n  | ExceptionGroup: unhandled errors\n  \
             +-+---------------- 1 ----------------\n    | httpx.ConnectError: All connection attempts failed\n    \
             +------------------------------------",
            "| httpx.ConnectError: All connection attempts failed",
        );
        check(
            "sqlalchemy.exc.OperationalError: no server\nERROR:    Application startup failed. Exiting.",
            "sqlalchemy.exc.OperationalError: no server | ERROR:    Application startup failed. Exiting.",
        );
    }

    #[test]
    fn panic_comes_with_its_message() {
        check(
            "thread 'main' panicked at src/main.rs:5:10:\nno token given\nnote: run with `RUST_BACKTRACE=1`",
            "thread 'main' panicked at src/main.rs:5:10: | no token given | note: run with `RUST_BACKTRACE=1`",
        );
        check(
            "panic: runtime error: index out of range\n\ngoroutine 1 [running]:\nmain.main()\n\t/a.go:8 +0x1d",
            "panic: runtime error: index out of range",
        );
    }

    #[test]
    fn reason_is_found_in_installer_output() {
        check(
            "npm error code E404\nnpm error 404 Not Found - GET https://registry.example/x - Not found\nnpm error 404\n\
             npm error A complete log of this run can be found in: /srv/.npm/_logs/debug-0.log",
            "npm error 404 Not Found - GET https://registry.example/x - Not found | npm error 404",
        );
        check("sh: 1: uvx: not found", "sh: 1: uvx: not found");
        check(
            "usage: tool [-h]\ntool: error: the following arguments are required: --key",
            "tool: error: the following arguments are required: --key",
        );
    }

    #[test]
    fn quiet_programs_have_no_telling_line() {
        check("starting\nlistening on stdio\n]\n}", "");
        check("", "");
    }
}
