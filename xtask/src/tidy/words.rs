//! Rules about the English of comments and the names of tests, as far as they can be counted.

use super::{
    Problem, has_extension,
    source::{Source, comments, is_of_word, line, positions},
};

/// The words that no comment opens with: they make a clause where the reader expects a noun or a verb.
const OPENINGS: [&str; 6] = ["What", "Whether", "Who", "Whom", "Whose", "How"];

/// Words and phrases that comments do without, and what to write instead.
const PHRASES: &[(&[&str], &str)] = &[
    (
        &[
            "nobody",
            "somebody",
            "anybody",
            "everybody",
            "whoever",
            "whomever",
            "whatever",
            "those who",
            "those that",
        ],
        "name the actor or the thing: the client, the server, the caller, the user",
    ),
    (
        &["so many", "so much", "so long"],
        "give the number with its unit, or say what is counted",
    ),
    (&["anew"], "write again, from scratch or new"),
    (
        &["is told", "are told", "was told", "were told", "be told"],
        "write receives, is notified or is reported",
    ),
    (
        &[
            "don't", "doesn't", "didn't", "isn't", "aren't", "can't", "won't", "it's", "that's",
            "there's",
        ],
        "write both words",
    ),
];

/// The most words of the name of a test.
const TEST_WORDS: usize = 8;

/// Finds the comments and the names of tests in a Rust file that break a rule.
pub(super) fn check(path: &str, text: &str) -> Vec<Problem> {
    if !has_extension(path, "rs") {
        return Vec::new();
    }
    let mut problems = Vec::new();
    for (line, comment) in comments(text) {
        let prose = without_code(&comment).to_lowercase();
        let opening = OPENINGS
            .iter()
            .find(|opening| first_word(&comment) == **opening);
        if let Some(opening) = opening.filter(|_| !is_question(&comment)) {
            let what = format!("a comment opens with {opening}: open with a noun or a verb");
            problems.push(Problem { line, what });
        }
        for (phrases, advice) in PHRASES {
            for phrase in *phrases {
                if positions(&prose, phrase).next().is_some() {
                    let what = format!("a comment has `{phrase}`: {advice}");
                    problems.push(Problem { line, what });
                }
            }
        }
    }
    for (line, name) in tests(&Source::new(text).all) {
        let words = name.split('_').count();
        if words > TEST_WORDS {
            let what = format!(
                "the test `{name}` has a name of {words} words, {TEST_WORDS} are allowed: state its behaviour"
            );
            problems.push(Problem { line, what });
        }
    }
    problems
}

fn first_word(comment: &str) -> &str {
    let comment = comment.trim_start();
    let end = comment.find(|letter| !is_of_word(letter));
    &comment[..end.unwrap_or(comment.len())]
}

/// Tests if the first sentence is a question, which may open with any word.
fn is_question(comment: &str) -> bool {
    let end = comment.find(['.', '?', ';']);
    end.is_some_and(|end| comment[end..].starts_with('?'))
}

/// The comment without what stands in backticks.
fn without_code(comment: &str) -> String {
    comment.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

/// The line and the name of each test.
fn tests(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for attribute in ["#[test]", "#[tokio::test"] {
        for (at, _) in text.match_indices(attribute) {
            let Some((_, rest)) = text[at..].split_once("fn ") else {
                continue;
            };
            let name = first_word(rest);
            let start = text.len() - rest.len();
            found.push((line(text, start), name));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let problems = check("crates/a/src/a.rs", text).into_iter();
        problems
            .map(|problem| format!("{}: {}", problem.line, problem.what))
            .collect()
    }

    #[test]
    fn each_rule_finds_a_seeded_violation() {
        for (text, expected) in [
            (
                "/// What is left.\nfn a() {}",
                "1: a comment opens with What",
            ),
            (
                "fn a() {} // Whether it is.",
                "1: a comment opens with Whether",
            ),
            ("//! How it works.", "1: a comment opens with How"),
            (
                "\n// The user\n// and nobody else.",
                "2: a comment has `nobody`",
            ),
            ("// Waits so\n// long.", "1: a comment has `so long`"),
            ("/// It's new.", "1: a comment has `it's`"),
            ("// Starts anew.", "1: a comment has `anew`"),
            ("// The client Is Told.", "1: a comment has `is told`"),
            (
                "#[tokio::test]\nasync fn a_b_c_d_e_f_g_h_i() {}",
                "2: the test `a_b_c_d_e_f_g_h_i` has a name of 9 words",
            ),
        ] {
            let problems = found(text);
            assert!(
                problems.len() == 1 && problems[0].starts_with(expected),
                "{text:?}: {problems:?}"
            );
        }
    }

    #[test]
    fn plain_english_and_code_pass() {
        for text in [
            "/// A call in flight.\n/// What follows is the second line.",
            "// What is this? A question.",
            "/// The method `whatever` of `nobody`.",
            "const A: &str = \"// What nobody wants\";",
            "#[test]\nfn late_response_is_dropped_and_counted() {}",
            "/// Whatsapp stores a soloist's anewid.",
        ] {
            assert_eq!(found(text), Vec::<String>::new(), "{text:?}");
        }
        assert!(check("README.md", "// What").is_empty());
    }
}
