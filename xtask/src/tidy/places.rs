//! Words that are allowed in some places only: the rules in the tables of `once` and `pure`.

use super::{
    Problem,
    source::{File, Source, line, positions},
};

/// A rule about the sources of crates.
pub(super) struct Rule {
    /// The crates it applies to; if empty, all.
    pub(super) crates: &'static [&'static str],
    /// The part of a source to search.
    pub(super) part: fn(&Source) -> &str,
    pub(super) words: &'static [&'static str],
    /// The files and directories where the words belong.
    pub(super) home: &'static [&'static str],
    /// The files that contain the words nevertheless, and how often. The numbers may only go down.
    pub(super) known: &'static [(&'static str, usize)],
    pub(super) advice: &'static str,
}

impl Rule {
    /// Looks for the words, and for stale entries of the table.
    pub(super) fn check(&self, files: &[File]) -> Vec<(String, Problem)> {
        let mut problems = Vec::new();
        let mut add =
            |path: &str, line, what| problems.push((path.to_owned(), Problem { line, what }));
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for file in files.iter().filter(|file| self.is_about(file)) {
            let path = file.path.as_str();
            let found = self.find((self.part)(&file.source));
            counts.push((path, found.len()));
            if self.home.iter().any(|home| path.starts_with(home)) {
                continue;
            }
            let bound = self.known.iter().find(|(known, _)| *known == path);
            let bound = bound.map_or(0, |(_, bound)| *bound);
            for (line, word) in found.into_iter().skip(bound) {
                let what = format!("`{word}`, {bound} allowed here: {}", self.advice);
                add(path, line, what);
            }
        }
        let homes = self.home.iter().map(|home| (*home, 1));
        for (path, bound) in homes.chain(self.known.iter().copied()) {
            let within = counts.iter().filter(|(file, _)| file.starts_with(path));
            let count: usize = within.map(|(_, count)| count).sum();
            if count < bound {
                let words = self.words.join("`, `");
                let what = format!(
                    "`{words}`: {count} found, {bound} allowed: lower the bound in xtask/src/tidy, or remove the entry"
                );
                add(path, 1, what);
            }
        }
        problems
    }

    fn is_about(&self, file: &File) -> bool {
        self.crates.is_empty() || self.crates.contains(&file.place().0)
    }

    /// The lines that contain one of the words, in order.
    fn find(&self, text: &str) -> Vec<(usize, &'static str)> {
        let of_word = |word: &&'static str| {
            let word = *word;
            positions(text, word).map(move |position| (line(text, position), word))
        };
        let mut found: Vec<_> = self.words.iter().flat_map(of_word).collect();
        found.sort_unstable();
        found
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The problems of these files, as printed.
    fn problems(rule: &Rule, files: &[(&str, &str)]) -> Vec<String> {
        let files = files
            .iter()
            .filter_map(|(path, text)| File::new(path, text));
        let problems = rule.check(&files.collect::<Vec<_>>()).into_iter();
        problems
            .map(|(path, Problem { line, what })| format!("{path}:{line}: {what}"))
            .collect()
    }

    /// The number of words found in a file where they do not belong.
    pub(in super::super) fn found(rule: &Rule, path: &str, text: &str) -> usize {
        let problems = problems(rule, &[(path, text)]).into_iter();
        problems
            .filter(|problem| problem.ends_with(rule.advice))
            .count()
    }

    const RULE: Rule = Rule {
        crates: &["a", "b"],
        part: |source| &source.code,
        words: &["go", "run"],
        home: &["crates/a/src/home/"],
        known: &[("crates/b/src/known.rs", 2)],
        advice: "walk",
    };
    const HOME: (&str, &str) = ("crates/a/src/home/x.rs", "go(); go();");

    #[test]
    fn words_outside_their_places_are_found() {
        let known = ("crates/b/src/known.rs", "run();\ngo();");
        assert!(problems(&RULE, &[HOME, known]).is_empty());
        let elsewhere = ("crates/a/src/x.rs", "// go\nlet gone = \"go\";\nrun();");
        assert_eq!(
            problems(&RULE, &[elsewhere, HOME, known]),
            ["crates/a/src/x.rs:3: `run`, 0 allowed here: walk"]
        );
        let other = ("crates/c/src/x.rs", "go();");
        assert!(problems(&RULE, &[HOME, known, other]).is_empty());
    }

    #[test]
    fn known_number_may_only_go_down() {
        for (text, what) in [
            (
                "run();\ngo();\ngo();",
                "known.rs:3: `go`, 2 allowed here: walk",
            ),
            (
                "run();",
                "known.rs:1: `go`, `run`: 1 found, 2 allowed: lower the bound in xtask/src/tidy, or remove the entry",
            ),
            (
                "",
                "known.rs:1: `go`, `run`: 0 found, 2 allowed: lower the bound in xtask/src/tidy, or remove the entry",
            ),
        ] {
            let problems = problems(&RULE, &[HOME, ("crates/b/src/known.rs", text)]);
            assert!(
                problems.len() == 1 && problems[0].ends_with(what),
                "{problems:?}"
            );
        }
        assert_eq!(problems(&RULE, &[]).len(), 2);
    }
}
