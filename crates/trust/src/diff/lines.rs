//! A changed text as lines with `-` and `+`, the words that changed in them marked.

use std::{fmt, iter};

use super::Change;

/// How many pairs of lines or words are compared for one diff. Texts that need more are shown whole.
const PAIRS: usize = 4_000_000;

/// How many lines that did not change are shown before and after those that did.
const AROUND: usize = 1;

/// How many pairs may still be compared.
pub(super) struct Effort(usize);

impl Default for Effort {
    fn default() -> Self {
        Self(PAIRS)
    }
}

/// Writes what changed in a field.
pub(super) fn write(
    f: &mut fmt::Formatter<'_>,
    effort: &mut Effort,
    change: &Change,
) -> fmt::Result {
    let lines = |text: &'_ Option<String>| -> Vec<String> {
        let lines = text.as_deref().map(|text| text.split('\n'));
        lines.into_iter().flatten().map(str::to_owned).collect()
    };
    let (before, after) = (lines(&change.before), lines(&change.after));
    let kept = common(effort, &before, &after);
    let mut is_kept = vec![false; before.len()];
    for (old, _) in &kept {
        is_kept[*old] = true;
    }
    let near = |old: usize| {
        let range = old.saturating_sub(AROUND)..(old + AROUND + 1).min(before.len());
        is_kept[range].iter().any(|kept| !kept)
    };

    let (mut old, mut new) = (0, 0);
    let mut left_out = false;
    let end = (before.len(), after.len());
    for (next_old, next_new) in kept.into_iter().chain(iter::once(end)) {
        let changed = old < next_old || new < next_new;
        if changed {
            write_changed(f, effort, &before[old..next_old], &after[new..next_new])?;
        }
        (old, new) = (next_old + 1, next_new + 1);
        let Some(line) = before.get(next_old) else {
            break;
        };
        // Lines that were only added leave no trace among the old ones.
        let added_after = after.get(new).is_some() && before.get(old) != after.get(new);
        if changed || added_after || near(next_old) {
            writeln!(f, "    {line}")?;
            left_out = false;
        } else if !left_out {
            writeln!(f, "    …")?;
            left_out = true;
        }
    }
    Ok(())
}

/// Writes lines that were replaced by others.
fn write_changed(
    f: &mut fmt::Formatter<'_>,
    effort: &mut Effort,
    before: &[String],
    after: &[String],
) -> fmt::Result {
    let (old_text, new_text) = (before.join("\n"), after.join("\n"));
    let (old, new) = (words(&old_text), words(&new_text));
    let kept = common(effort, &old, &new);
    // Texts that have hardly a word in common are easier to read whole.
    let alike = 3 * kept.len() >= old.len().max(new.len());
    if !before.is_empty() {
        let kept = alike.then(|| kept.iter().map(|(old, _)| *old));
        write_side(f, "-", &marked(&old, kept, ["[-", "-]"]))?;
    }
    if !after.is_empty() {
        let kept = alike.then(|| kept.iter().map(|(_, new)| *new));
        write_side(f, "+", &marked(&new, kept, ["{+", "+}"]))?;
    }
    Ok(())
}

fn write_side(f: &mut fmt::Formatter<'_>, sign: &str, text: &str) -> fmt::Result {
    let mut lines = text.split('\n');
    lines.try_for_each(|line| writeln!(f, "  {sign} {line}"))
}

/// The words put together again, with marks around those that were not kept; without `kept` no marks.
fn marked(
    words: &[&str],
    kept: Option<impl Iterator<Item = usize>>,
    [open, close]: [&str; 2],
) -> String {
    let Some(kept) = kept else {
        return words.concat();
    };
    let mut kept = kept.peekable();
    let mut out = String::new();
    let mut is_open = false;
    for (at, word) in words.iter().enumerate() {
        let is_kept = kept.next_if_eq(&at).is_some();
        // A mark does not reach over the end of a line.
        let marks = !is_kept && *word != "\n";
        if marks != is_open {
            out.push_str(if marks { open } else { close });
            is_open = marks;
        }
        out.push_str(word);
    }
    if is_open {
        out.push_str(close);
    }
    out
}

/// The words, spaces, line ends and other characters of a text.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let is_space = |c: char| c.is_whitespace() && c != '\n';
        let length = if is_word(first) {
            rest.find(|c| !is_word(c))
        } else if is_space(first) {
            rest.find(|c| !is_space(c))
        } else if first == '⟨' {
            // A character that is not shown, spelled out.
            rest.find('⟩').map(|end| end + '⟩'.len_utf8())
        } else {
            Some(first.len_utf8())
        };
        let (word, after) = rest.split_at(length.unwrap_or(rest.len()));
        words.push(word);
        rest = after;
    }
    words
}

/// Which pieces of two texts are the same, in their order: a longest common subsequence. If that
/// takes more effort than there is left, only the common start and end.
fn common<T: PartialEq>(effort: &mut Effort, before: &[T], after: &[T]) -> Vec<(usize, usize)> {
    let start = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    let (old, new) = (&before[start..], &after[start..]);
    let ends = old.iter().rev().zip(new.iter().rev());
    let end = ends.take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[..old.len() - end], &new[..new.len() - end]);

    let mut kept: Vec<_> = (0..start).map(|at| (at, at)).collect();
    let pairs = old.len().saturating_mul(new.len());
    if pairs <= effort.0 {
        effort.0 -= pairs;
        let middle = longest_common(old, new);
        kept.extend(middle.into_iter().map(|(a, b)| (a + start, b + start)));
    }
    let tail = (0..end).map(|at| (before.len() - end + at, after.len() - end + at));
    kept.extend(tail);
    kept
}

fn longest_common<T: PartialEq>(old: &[T], new: &[T]) -> Vec<(usize, usize)> {
    // How long the longest common rest is, from each pair of places on.
    let width = new.len() + 1;
    let mut rest = vec![0_u32; (old.len() + 1) * width];
    for a in (0..old.len()).rev() {
        for b in (0..new.len()).rev() {
            rest[a * width + b] = if old[a] == new[b] {
                rest[(a + 1) * width + b + 1] + 1
            } else {
                rest[(a + 1) * width + b].max(rest[a * width + b + 1])
            };
        }
    }
    let mut kept = Vec::new();
    let (mut a, mut b) = (0, 0);
    while a < old.len() && b < new.len() {
        if old[a] == new[b] {
            kept.push((a, b));
            (a, b) = (a + 1, b + 1);
        } else if rest[(a + 1) * width + b] >= rest[a * width + b + 1] {
            a += 1;
        } else {
            b += 1;
        }
    }
    kept
}
