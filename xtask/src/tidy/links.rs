//! A rule about Markdown: every link to a file of the repository, and to a heading in one, leads somewhere.

use std::collections::{BTreeMap, BTreeSet};

use super::{Problem, has_extension, source::line};

/// Checks the links of all Markdown files among these, which are all files of the repository with their texts.
pub(super) fn check(files: &BTreeMap<String, String>) -> Vec<(String, Problem)> {
    let mut problems = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| has_extension(path, "md")) {
        for (at, target) in links(text) {
            if let Some(what) = dead(path, text, target, files) {
                let line = line(text, at);
                problems.push((path.clone(), Problem { line, what }));
            }
        }
    }
    problems
}

/// The complaint about a link that leads nowhere.
fn dead(from: &str, text: &str, target: &str, files: &BTreeMap<String, String>) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let (path, text) = if file.is_empty() {
        (from.to_owned(), Some(text))
    } else {
        let path = resolve(from, file);
        let text = files.get(&path).map(String::as_str);
        (path, text)
    };
    let is_folder = || {
        let folder = format!("{}/", path.trim_end_matches('/'));
        files.keys().any(|file| file.starts_with(&folder))
    };
    match text {
        None if is_folder() => None,
        None => Some(format!("the link `{target}` leads to no file: correct it")),
        Some(text) if anchor.is_empty() || headings(text).contains(anchor) => None,
        Some(_) => Some(format!(
            "the link `{target}` leads to no heading of {path}: correct it"
        )),
    }
}

/// The path that a relative link leads to.
fn resolve(from: &str, link: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The places and targets of links and pictures, without code.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_block = false;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            found.extend(links_in_line(line).map(|(at, target)| (start + at, target)));
        }
        start += line.len();
    }
    found
}

fn links_in_line(line: &str) -> impl Iterator<Item = (usize, &str)> {
    line.match_indices("](").filter_map(|(at, open)| {
        // An odd number of backticks before it: it is code.
        if line[..at].matches('`').count() % 2 == 1 {
            return None;
        }
        let target = &line[at + open.len()..];
        let end = target.find([')', ' '])?;
        Some((at, &target[..end]))
    })
}

/// The anchors of all headings of a text.
fn headings(text: &str) -> BTreeSet<String> {
    let mut in_block = false;
    let mut anchors = BTreeSet::new();
    for line in text.lines() {
        in_block ^= line.starts_with("```");
        if let Some(heading) = line.strip_prefix('#').filter(|_| !in_block) {
            let slug = slug(heading.trim_start_matches('#').trim());
            // A second heading of the same text has a number.
            let numbered = (1..).map(|number| format!("{slug}-{number}"));
            let mut names = std::iter::once(slug.clone()).chain(numbered);
            let free = names.find(|name| !anchors.contains(name));
            anchors.extend(free);
        }
    }
    anchors
}

/// The anchor of a heading, as mdBook and GitHub make it.
fn slug(heading: &str) -> String {
    let letters = heading.chars().filter_map(|letter| match letter {
        letter if letter.is_alphanumeric() || matches!(letter, '-' | '_') => {
            Some(letter.to_ascii_lowercase())
        }
        letter if letter.is_whitespace() => Some('-'),
        _ => None,
    });
    letters.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(page: &str) -> Vec<String> {
        let files = [
            (
                "README.md",
                "# Title\n## A `code` heading\n## Twice\n## Twice\n",
            ),
            ("docs/a/page.md", page),
            ("docs/image.png", ""),
        ];
        let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
        let problems = check(&BTreeMap::from(files)).into_iter();
        problems
            .map(|(path, problem)| format!("{path}:{}: {}", problem.line, problem.what))
            .collect()
    }

    #[test]
    fn dead_links_are_found() {
        let page = "[a](b.md)\n\n[a](../../README.md#none) ![](../image.jpg) [x](#y)";
        let expected = ["page.md:1", "page.md:3", "page.md:3", "page.md:3"];
        let found = found(page);
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains(expected), "{found}");
        }
    }

    #[test]
    fn links_that_lead_somewhere_pass() {
        let page = "# Here\n[a](../../README.md#a-code-heading) ![p](../image.png) [h](#here) [f](../a) \
                    [w](https://example.com/x.md) `[c](none.md)` [t](../../README.md#twice-1)\n```\n[c](none.md)\n```";
        assert_eq!(found(page), Vec::<String>::new());
    }
}
