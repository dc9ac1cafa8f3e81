//! A changed text as lines with `-` and `+`, with the changed words marked.

use std::fmt;

use similar::{
    DiffOp, DiffTag,
    algorithms::{Capture, Replace, lcs},
};

use super::Change;

/// The most pairs of lines or words to compare for one diff. Texts that need more are shown whole.
const PAIRS: usize = 4_000_000;

/// Unchanged lines to show before and after changed ones.
const AROUND: usize = 1;

/// The number of pairs that may still be compared.
pub(super) struct Effort(usize);

impl Default for Effort {
    fn default() -> Self {
        Self(PAIRS)
    }
}

impl Effort {
    /// The edit steps from one text to the other that keep the most pieces. If the remaining effort is
    /// too small to find them, only the common prefix and suffix are kept.
    fn compare(&mut self, before: &[&str], after: &[&str]) -> Vec<DiffOp> {
        let start = before.iter().zip(after).take_while(|(a, b)| a == b).count();
        let ends = before[start..]
            .iter()
            .rev()
            .zip(after[start..].iter().rev());
        let end = ends.take_while(|(a, b)| a == b).count();
        let (old_end, new_end) = (before.len() - end, after.len() - end);
        let pairs = (old_end - start).saturating_mul(new_end - start);
        let Some(left) = self.0.checked_sub(pairs) else {
            let equal = |old_index, new_index, len| DiffOp::Equal {
                old_index,
                new_index,
                len,
            };
            let changed = DiffOp::Replace {
                old_index: start,
                old_len: old_end - start,
                new_index: start,
                new_len: new_end - start,
            };
            return vec![equal(0, 0, start), changed, equal(old_end, new_end, end)];
        };
        self.0 = left;
        let mut steps = Replace::new(Capture::new());
        let (old, new) = (0..before.len(), 0..after.len());
        let Ok(()) = lcs::diff(&mut steps, before, old, after, new);
        steps.into_inner().into_ops()
    }
}

/// Writes the changes of a field.
pub(super) fn write(
    f: &mut fmt::Formatter<'_>,
    effort: &mut Effort,
    change: &Change,
) -> fmt::Result {
    let [before, after] = [&change.before, &change.after].map(|text| {
        text.iter()
            .flat_map(|text| text.split('\n'))
            .collect::<Vec<_>>()
    });
    let steps = effort.compare(&before, &after);
    for (n, step) in steps.iter().enumerate() {
        let (tag, old, new) = step.as_tag_tuple();
        if tag != DiffTag::Equal {
            write_changed(f, effort, &before[old], &after[new])?;
            continue;
        }
        let kept = &before[old];
        let mut left_out = false;
        for (at, line) in kept.iter().enumerate() {
            let is_after = n > 0 && at < AROUND;
            let is_before = n + 1 < steps.len() && at + AROUND >= kept.len();
            if is_after || is_before {
                writeln!(f, "    {line}")?;
            } else if !left_out {
                writeln!(f, "    …")?;
                left_out = true;
            }
        }
    }
    Ok(())
}

/// Writes lines that were replaced by others.
fn write_changed(
    f: &mut fmt::Formatter<'_>,
    effort: &mut Effort,
    before: &[&str],
    after: &[&str],
) -> fmt::Result {
    let (old_text, new_text) = (before.join("\n"), after.join("\n"));
    let (old, new) = (words(&old_text), words(&new_text));
    let steps = effort.compare(&old, &new);
    let is_kept = |step: &DiffOp| step.tag() == DiffTag::Equal;
    let kept: usize = (steps.iter().filter(|step| is_kept(step)))
        .map(|step| step.old_range().len())
        .sum();
    // Texts with hardly a word in common are more readable whole.
    let is_alike = 3 * kept >= old.len().max(new.len());
    let is_marked = |step: &DiffOp| is_alike && !is_kept(step);
    if !before.is_empty() {
        let old = steps
            .iter()
            .map(|step| (is_marked(step), &old[step.old_range()]));
        write_side(f, "-", &marked(old, ["[-", "-]"]))?;
    }
    if !after.is_empty() {
        let new = steps
            .iter()
            .map(|step| (is_marked(step), &new[step.new_range()]));
        write_side(f, "+", &marked(new, ["{+", "+}"]))?;
    }
    Ok(())
}

fn write_side(f: &mut fmt::Formatter<'_>, sign: &str, text: &str) -> fmt::Result {
    let mut lines = text.split('\n');
    lines.try_for_each(|line| writeln!(f, "  {sign} {line}"))
}

/// Joins the words, with marks around the changed ones.
fn marked<'a>(
    steps: impl Iterator<Item = (bool, &'a [&'a str])>,
    [open, close]: [&str; 2],
) -> String {
    let mut out = String::new();
    let mut is_open = false;
    for (is_marked, words) in steps {
        for word in words {
            // A mark never spans the end of a line.
            let marks = is_marked && *word != "\n";
            if marks != is_open {
                out.push_str(if marks { open } else { close });
                is_open = marks;
            }
            out.push_str(word);
        }
    }
    if is_open {
        out.push_str(close);
    }
    out
}

/// Splits a text into words, spaces, line ends and other characters.
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
            // An escaped invisible character.
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
