//! Rules about the modules of a crate: no large cycles among those at its top.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Problem,
    source::{File, is_of_word, positions},
};

/// So many modules may use each other in a cycle: two that are one thing in two files, and a third.
const MAX: usize = 3;

/// The modules of one crate, and which of the others each of them uses.
type Uses<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Looks for cycles in each crate. `files` are in the order of their paths.
pub(super) fn check(files: &[File]) -> Vec<(String, Problem)> {
    let mut problems = Vec::new();
    for files in files.chunk_by(|one, other| one.place().0 == other.place().0) {
        let (name, _) = files[0].place();
        let uses = uses(files);
        for cycle in cycles(&uses) {
            if cycle.len() > MAX {
                let what = too_large(name, &cycle, &uses);
                problems.push((format!("crates/{name}/src"), Problem { line: 1, what }));
            }
        }
    }
    problems
}

fn too_large(name: &str, cycle: &BTreeSet<&str>, uses: &Uses<'_>) -> String {
    let steps = cycle.iter().map(|module| {
        let used: Vec<&str> = uses[module].intersection(cycle).copied().collect();
        format!("{module} uses {}", used.join(", "))
    });
    let steps: Vec<String> = steps.collect();
    format!(
        "`{name}` has a cycle of {} modules, {MAX} are allowed: move what two of them share below both ({})",
        cycle.len(),
        steps.join("; ")
    )
}

/// The sets of modules that all lead to each other.
fn cycles<'a>(uses: &Uses<'a>) -> Vec<BTreeSet<&'a str>> {
    let reached: Uses<'a> = uses
        .keys()
        .map(|module| (*module, reached(module, uses)))
        .collect();
    let mut cycles = Vec::new();
    for (module, ahead) in &reached {
        let cycle: BTreeSet<&str> = ahead
            .iter()
            .copied()
            .filter(|other| reached[other].contains(module))
            .collect();
        // Each is found once for each of its modules.
        if cycle.first() == Some(module) {
            cycles.push(cycle);
        }
    }
    cycles
}

/// All that a module leads to.
fn reached<'a>(module: &str, uses: &Uses<'a>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = uses[module].iter().copied().collect();
    while let Some(module) = next.pop() {
        if reached.insert(module) {
            next.extend(&uses[module]);
        }
    }
    reached
}

/// The graph of a crate. A name that the root of the crate hands on stands for the module that it comes from.
fn uses(files: &[File]) -> Uses<'_> {
    let modules: BTreeSet<&str> = files.iter().filter_map(module).collect();
    let mut origins = BTreeMap::new();
    for root in files.iter().filter(|file| module(file).is_none()) {
        let names = paths(&root.source.code, "use ").into_iter();
        let names = names.filter(|(first, last)| modules.contains(first) && *last != "self");
        origins.extend(names.map(|(first, last)| (last, first)));
    }
    origins.extend(modules.into_iter().map(|module| (module, module)));
    let mut uses = Uses::new();
    for file in files {
        let Some(own) = module(file) else { continue };
        let names = paths(&file.source.code, "crate::").into_iter();
        let used = names.filter_map(|(first, _)| origins.get(first).copied());
        uses.entry(own)
            .or_default()
            .extend(used.filter(|used| *used != own));
    }
    uses
}

/// The module at the top that a file belongs to, if that is not the root itself.
fn module(file: &File) -> Option<&str> {
    let (_, inside) = file.place();
    let (top, _) = inside.split_once(['/', '.'])?;
    (!matches!(inside, "lib.rs" | "main.rs")).then_some(top)
}

/// The first and the last name of each path that follows this word.
fn paths<'a>(code: &'a str, word: &str) -> Vec<(&'a str, &'a str)> {
    let mut found = Vec::new();
    for start in positions(code, word) {
        let tree = &code[start + word.len()..];
        let tree = tree
            .trim_start_matches("crate::")
            .trim_start_matches("self::");
        read_tree(tree, None, &mut found);
    }
    found
}

/// Reads paths such as `a::{b, c::d as e}`, and hands back what follows them.
fn read_tree<'a>(
    tree: &'a str,
    first: Option<&'a str>,
    found: &mut Vec<(&'a str, &'a str)>,
) -> &'a str {
    if let Some(mut rest) = tree.strip_prefix('{') {
        loop {
            rest = rest.trim_start_matches(|letter: char| letter == ',' || letter.is_whitespace());
            if let Some(after) = rest.strip_prefix('}') {
                return after;
            }
            let after = read_tree(rest, first, found);
            if after.len() == rest.len() {
                return rest;
            }
            rest = after;
        }
    }
    let (name, rest) = split_word(tree);
    let first = first.unwrap_or(name);
    if let Some(rest) = rest.strip_prefix("::") {
        return read_tree(rest, Some(first), found);
    }
    let (last, rest) = rest.strip_prefix(" as ").map_or((name, rest), split_word);
    found.push((first, last));
    rest
}

fn split_word(text: &str) -> (&str, &str) {
    let end = text.find(|letter| !is_of_word(letter) && letter != '*');
    text.split_at(end.unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The problems of a crate `a` that is made of these files.
    fn problems(files: &[(&str, &str)]) -> Vec<String> {
        let file = |(path, text): &(&str, &str)| File::new(&format!("crates/a/src/{path}"), text);
        let files: Vec<File> = files.iter().filter_map(file).collect();
        let problems = check(&files).into_iter();
        problems.map(|(_, problem)| problem.what).collect()
    }

    /// A cycle of four: b, c, d, e.
    const FOUR: [(&str, &str); 7] = [
        ("b/mod.rs", "use crate::{self, f, c::{d, g}};"),
        ("c/inner.rs", "fn c() { crate::d::go() }"),
        ("c.rs", ""),
        ("d.rs", "use crate::E as B;"),
        ("e.rs", "pub(super) use crate::{g, b as h};"),
        (
            "f.rs",
            "// crate::b\nconst F: &str = \"crate::b\";\n#[cfg(test)]\nmod tests { use crate::b; }",
        ),
        (
            "lib.rs",
            "mod b;\nuse e::{X};\npub use self::e::{self, D as E};\nuse crate::b;",
        ),
    ];

    #[test]
    fn a_large_cycle_is_shown_with_its_steps() {
        let [problem] = &problems(&FOUR)[..] else {
            panic!("one cycle");
        };
        assert!(
            problem.starts_with("`a` has a cycle of 4 modules, 3 are allowed"),
            "{problem}"
        );
        assert!(
            problem.ends_with("(b uses c; c uses d; d uses e; e uses b)"),
            "{problem}"
        );
    }

    #[test]
    fn a_cycle_without_one_of_its_steps_is_none() {
        for left_out in ["b/mod.rs", "c/inner.rs", "d.rs", "e.rs", "lib.rs"] {
            let files = FOUR.map(|(path, text)| (path, if path == left_out { "" } else { text }));
            assert!(problems(&files).is_empty(), "{left_out}");
        }
    }

    #[test]
    fn three_modules_may_be_a_cycle() {
        let files = [
            ("b.rs", "crate::c"),
            ("c.rs", "crate::d"),
            ("d.rs", "crate::b"),
        ];
        assert!(problems(&files).is_empty());
    }
}
