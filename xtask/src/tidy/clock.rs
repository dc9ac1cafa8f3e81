//! A rule about tests: none may fail because the machine is busy.

use super::{
    Problem, has_extension,
    source::{Source, is_of_word, line, positions},
};

/// The tests that compare a time with an upper bound nevertheless, and how often. The numbers may only go
/// down.
pub(super) const KNOWN: &[(&str, usize)] = &[
    // A gateway that waits ten seconds for other calls to end is detectable by time alone.
    ("crates/switchboard/tests/matrix/faults/asking.rs", 1),
    // The time is the thing under test; the fastest of five rounds counts.
    ("crates/switchboard/tests/e2e/promptness.rs", 1),
    // This test retries until an attempt is fast, so one slow attempt is harmless.
    ("crates/store/tests/it/ordinary.rs", 1),
    ("crates/cli/src/doctor/program.rs", 1),
];

const ADVICE: &str = "a busy machine exceeds it: make an incorrect wait last forever, check the order of events, \
                      or use virtual time";

/// The lines of a file on which a test requires something to finish within a time.
pub(super) fn find(path: &str, text: &str) -> Vec<usize> {
    if !has_extension(path, "rs") || path.starts_with("bench/") {
        return Vec::new();
    }
    let source = Source::new(text);
    let all = source.all.as_str();
    let is_test_file = path.split('/').any(|part| part == "tests");
    let is_test = |at: usize| is_test_file || source.code.as_bytes()[at] != all.as_bytes()[at];
    let mut found = Vec::new();
    for at in positions(all, "elapsed()") {
        let after = behind_calls(&all[at + "elapsed()".len()..]);
        if is_less(after) {
            found.push(at);
        }
        if let Some(name) = bound_name(&all[..at], after) {
            let uses = positions(&all[at..], name).map(|ahead| at + ahead);
            found.extend(uses.filter(|at| is_less(behind_calls(&all[at + name.len()..]))));
        }
    }
    found.sort_unstable();
    found.dedup();
    found.retain(|at| is_test(*at));
    found.into_iter().map(|at| line(all, at)).collect()
}

/// Checks the lines of all files against the table.
pub(super) fn check(
    files: &[(String, Vec<usize>)],
    known: &[(&str, usize)],
) -> Vec<(String, Problem)> {
    let mut problems = Vec::new();
    let bound = |path: &str| known.iter().find(|(of, _)| *of == path);
    for (path, lines) in files {
        let bound = bound(path).map_or(0, |(_, bound)| *bound);
        for line in lines.iter().skip(bound) {
            let what = format!("an upper bound on a duration, {bound} allowed here: {ADVICE}");
            problems.push((path.clone(), Problem { line: *line, what }));
        }
    }
    for (path, bound) in known {
        let lines = files.iter().find(|(of, _)| of == path);
        let count = lines.map_or(0, |(_, lines)| lines.len());
        if count < *bound {
            let what = format!(
                "upper bounds on a duration: {count} found, {bound} allowed: lower the bound in {}, or remove the entry",
                file!()
            );
            problems.push(((*path).to_owned(), Problem { line: 1, what }));
        }
    }
    problems
}

/// Skips method calls without arguments, such as `.as_secs()`, and returns the rest.
fn behind_calls(mut rest: &str) -> &str {
    loop {
        rest = rest.trim_start();
        let Some(call) = rest.strip_prefix('.') else {
            return rest;
        };
        let name = call.trim_start_matches(is_of_word);
        match name.strip_prefix("()") {
            Some(after) => rest = after,
            None => return rest,
        }
    }
}

/// Tests if the text starts with a less-than comparison.
fn is_less(rest: &str) -> bool {
    rest.starts_with('<') && !rest.starts_with("<<")
}

/// The name in `let NAME = … .elapsed();`.
fn bound_name<'a>(before: &'a str, after: &str) -> Option<&'a str> {
    let statement = before.rsplit([';', '{', '}']).next()?.trim_start();
    let name = statement.strip_prefix("let ")?.trim_start();
    let name = name.split(|letter| !is_of_word(letter)).next()?;
    (after.starts_with(';') && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: &str = "crates/a/tests/it/b.rs";

    #[test]
    fn upper_bounds_are_found_in_tests() {
        for text in [
            "assert!(a.elapsed() < B);",
            "assert!(a.elapsed() <= B, \"{a:?}\");",
            "while a.elapsed().as_millis() < 5 {}",
            "assert!(\n    a.elapsed()\n        < B,\n);",
            "let took = a.elapsed(); x(); assert!(took < B);",
            "let took = a.b().elapsed().as_secs(); assert!(took <= 3);",
        ] {
            assert_eq!(find(TEST, text).len(), 1, "{text}");
            assert_eq!(find("tests/it/b.rs", text).len(), 1, "{text}");
            assert_eq!(find("crates/a/src/b.rs", text), [], "{text}");
            assert_eq!(find("bench/src/tests/b.rs", text), [], "{text}");
            let inside = format!("fn a() {{}}\n#[cfg(test)]\nmod tests {{ fn b() {{ {text} }} }}");
            assert_eq!(find("crates/a/src/b.rs", &inside).len(), 1, "{text}");
        }
    }

    #[test]
    fn other_times_pass() {
        for text in [
            "assert!(a.elapsed() >= B);",
            "assert!(B < a.elapsed());",
            "assert_eq!(a.elapsed(), Duration::ZERO);",
            "let took = a.elapsed(); assert!(took >= B);",
            "let took = a.elapsed(); let x: Vec<u8>; assert!(other < B);",
            "// a.elapsed() < B",
        ] {
            assert_eq!(find(TEST, text), [], "{text}");
        }
    }

    #[test]
    fn known_number_may_only_go_down() {
        let check = |lines: &[usize]| {
            let problems = check(&[(TEST.to_owned(), lines.to_vec())], &[(TEST, 1)]);
            let lines = problems.iter().map(|(_, problem)| problem.line);
            lines.collect::<Vec<_>>()
        };
        assert_eq!(check(&[7]), []);
        assert_eq!(check(&[7, 9]), [9]);
        assert_eq!(check(&[]), [1]);
        assert_eq!(super::check(&[], &[(TEST, 1)]).len(), 1);
    }
}
