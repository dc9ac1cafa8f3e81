//! A rule about the modules of a crate: no large cycles among siblings, at the top or inside a module.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Problem,
    source::{File, is_of_word, positions},
};

/// The most modules in a cycle: a module in two files, and a third one.
const MAX: usize = 3;

/// Sibling modules in a crate or a module, each with the siblings that it uses.
type Uses<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// The segments of a path, such as `crate`, `call` and `Record`.
type Path<'a> = Vec<&'a str>;

/// Looks for cycles in each crate. `files` are sorted by path.
pub(super) fn check(files: &[File]) -> Vec<(String, Problem)> {
    let mut problems = Vec::new();
    for files in files.chunk_by(|one, other| one.place().0 == other.place().0) {
        let (name, _) = files[0].place();
        let modules: Vec<Module<'_>> = files.iter().map(Module::of).collect();
        // Every module is checked, and the crate itself, whose path is empty.
        let parents: BTreeSet<&[&str]> = modules
            .iter()
            .flat_map(|module| (0..module.path.len()).map(|length| &module.path[..length]))
            .collect();
        for parent in parents {
            let uses = uses(&modules, parent);
            for cycle in cycles(&uses) {
                if cycle.len() > MAX {
                    let place: Vec<&str> = [name].iter().chain(parent).copied().collect();
                    let what = too_large(&place.join("::"), &cycle, &uses);
                    problems.push((format!("crates/{name}/src"), Problem { line: 1, what }));
                }
            }
        }
    }
    problems
}

/// A file as a module, with its paths resolved from the crate root.
struct Module<'a> {
    path: Path<'a>,
    /// All paths.
    used: Vec<Path<'a>>,
    /// Paths of `use` items that lead below the module itself: its re-exports.
    handed_on: Vec<Path<'a>>,
}

impl<'a> Module<'a> {
    fn of(file: &'a File) -> Self {
        let (_, inside) = file.place();
        let path: Path<'a> = match inside {
            "lib.rs" | "main.rs" => Vec::new(),
            _ => {
                let inside = inside.trim_end_matches(".rs").trim_end_matches("/mod");
                inside.split('/').collect()
            }
        };
        let code = &file.source.code;
        let mut used = paths(code, "crate::", &[]);
        for (start, supers) in super_chains(code) {
            // A chain that leads out of the crate is in an inline module.
            if let Some(length) = path.len().checked_sub(supers) {
                read_tree(&code[start..], &path[..length], &mut used);
            }
        }
        let mut handed_on = paths(code, "use ", &path);
        handed_on.retain(|found| found.len() > path.len() + 1);
        Self {
            path,
            used,
            handed_on,
        }
    }

    /// The child of `parent` that is this module or contains it.
    fn below(&self, parent: &[&'a str]) -> Option<&'a str> {
        let rest = self.path.strip_prefix(parent)?;
        rest.first().copied()
    }
}

fn too_large(name: &str, cycle: &BTreeSet<&str>, uses: &Uses<'_>) -> String {
    let steps = cycle.iter().map(|module| {
        let used: Vec<&str> = uses[module].intersection(cycle).copied().collect();
        format!("{module} uses {}", used.join(", "))
    });
    let steps: Vec<String> = steps.collect();
    format!(
        "`{name}` has a cycle of {} modules, {MAX} are allowed: move the code that two of them share below both ({})",
        cycle.len(),
        steps.join("; ")
    )
}

/// The sets of modules that all reach each other.
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
        // A cycle is found once per module; keep the first.
        if cycle.first() == Some(module) {
            cycles.push(cycle);
        }
    }
    cycles
}

/// All modules that a module reaches.
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

/// The graph of the modules below a parent. A name that the parent re-exports counts as the module that it
/// comes from.
fn uses<'a>(modules: &[Module<'a>], parent: &[&'a str]) -> Uses<'a> {
    let children: BTreeSet<&str> = modules.iter().filter_map(|it| it.below(parent)).collect();
    let mut origins: BTreeMap<&str, &'a str> = BTreeMap::new();
    for root in modules.iter().filter(|module| module.path == parent) {
        for path in &root.handed_on {
            if let (Some(first), Some(last)) = (path.get(parent.len()), path.last())
                && children.contains(first)
                && *last != "self"
            {
                origins.insert(last, first);
            }
        }
    }
    origins.extend(children.into_iter().map(|child| (child, child)));
    let mut uses = Uses::new();
    for module in modules {
        let Some(own) = module.below(parent) else {
            continue;
        };
        let names = module.used.iter().filter_map(|path| {
            let rest = path.strip_prefix(parent)?;
            origins.get(rest.first()?).copied()
        });
        let used = names.filter(|used| *used != own);
        uses.entry(own).or_default().extend(used);
    }
    uses
}

/// The paths that follow this word, resolved against `base`.
fn paths<'a>(code: &'a str, word: &str, base: &[&'a str]) -> Vec<Path<'a>> {
    let mut found = Vec::new();
    for start in positions(code, word) {
        let tree = &code[start + word.len()..];
        let tree = tree
            .trim_start_matches("crate::")
            .trim_start_matches("self::");
        read_tree(tree, base, &mut found);
    }
    found
}

/// For each chain of `super::`: the position after it, and its length.
fn super_chains(code: &str) -> Vec<(usize, usize)> {
    const SUPER: &str = "super::";
    let mut chains: Vec<(usize, usize)> = Vec::new();
    for start in positions(code, SUPER) {
        match chains.last_mut() {
            Some((end, supers)) if *end == start => {
                *end += SUPER.len();
                *supers += 1;
            }
            _ => chains.push((start + SUPER.len(), 1)),
        }
    }
    chains
}

/// Reads paths such as `a::{b, c::d as e}` below `base`, and returns the text that follows. A path with an
/// alias is added twice: as written, and with the alias appended.
fn read_tree<'a>(tree: &'a str, base: &[&'a str], found: &mut Vec<Path<'a>>) -> &'a str {
    if let Some(mut rest) = tree.strip_prefix('{') {
        loop {
            rest = rest.trim_start_matches(|letter: char| letter == ',' || letter.is_whitespace());
            if let Some(after) = rest.strip_prefix('}') {
                return after;
            }
            let after = read_tree(rest, base, found);
            if after.len() == rest.len() {
                return rest;
            }
            rest = after;
        }
    }
    let (name, rest) = split_word(tree);
    let mut path = base.to_vec();
    path.push(name);
    if let Some(rest) = rest.strip_prefix("::") {
        return read_tree(rest, &path, found);
    }
    let Some((alias, rest)) = rest.strip_prefix(" as ").map(split_word) else {
        found.push(path);
        return rest;
    };
    // A use counts by the first of the two names, a re-export by the last.
    found.push(path.clone());
    path.push(alias);
    found.push(path);
    rest
}

fn split_word(text: &str) -> (&str, &str) {
    let end = text.find(|letter| !is_of_word(letter) && letter != '*');
    text.split_at(end.unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The problems of a crate `a` that consists of these files.
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
    fn large_cycle_is_reported_with_its_steps() {
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
    fn removing_one_step_breaks_the_cycle() {
        for left_out in ["b/mod.rs", "c/inner.rs", "d.rs", "e.rs", "lib.rs"] {
            let files = FOUR.map(|(path, text)| (path, if path == left_out { "" } else { text }));
            assert!(problems(&files).is_empty(), "{left_out}");
        }
    }

    #[test]
    fn cycle_inside_a_module_is_found() {
        let files = [
            ("lib.rs", "mod m;"),
            ("m.rs", "pub(crate) use self::b::B as X;"),
            ("m/b.rs", "use super::{c::C, other};"),
            ("m/c/inner.rs", "use super::super::d;"),
            ("m/c.rs", ""),
            ("m/d.rs", "use crate::m::e;"),
            ("m/e.rs", "use super::X;"),
        ];
        let [problem] = &problems(&files)[..] else {
            panic!("one cycle");
        };
        assert!(
            problem.starts_with("`a::m` has a cycle of 4 modules"),
            "{problem}"
        );
        for left_out in 1..files.len() {
            let mut files = files;
            if files[left_out].1.is_empty() {
                continue;
            }
            files[left_out].1 = "";
            assert!(problems(&files).is_empty(), "{}", files[left_out].0);
        }
    }

    #[test]
    fn three_modules_may_form_a_cycle() {
        let files = [
            ("b.rs", "crate::c"),
            ("c.rs", "crate::d"),
            ("d.rs", "crate::b"),
        ];
        assert!(problems(&files).is_empty());
    }
}
