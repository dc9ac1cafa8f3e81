//! The difference between two texts, as `diff -u` would show it.
//!
//! What is compared here differs in one place, so everything between the first and the last line
//! that differ makes one hunk.

use std::fmt::Write as _;
use std::path::Path;

const CONTEXT: usize = 3;

/// The unified difference, or nothing where there is none. `None` is a file that is not there.
pub fn unified(file: &Path, before: Option<&str>, after: &str) -> String {
    if before == Some(after) {
        return String::new();
    }
    let old: Vec<&str> = before.unwrap_or("").split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let same_start = (old.iter().zip(&new)).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[same_start..], &new[same_start..]);
    let same_end = (old_rest.iter().rev().zip(new_rest.iter().rev()))
        .take_while(|(a, b)| a == b)
        .count();

    let from = same_start.saturating_sub(CONTEXT);
    let context_after = same_end.min(CONTEXT);
    let old_changed = &old[same_start..old.len() - same_end];
    let new_changed = &new[same_start..new.len() - same_end];
    let around = same_start - from + context_after;

    let path = file.display();
    let old_name = before.map_or_else(|| "/dev/null".to_owned(), |_| path.to_string());
    let mut diff = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(diff, "--- {old_name}\n+++ {path}");
    let _ = writeln!(
        diff,
        "@@ -{} +{} @@",
        range(from, old_changed.len() + around),
        range(from, new_changed.len() + around)
    );
    lines(&mut diff, ' ', &old[from..same_start]);
    lines(&mut diff, '-', old_changed);
    lines(&mut diff, '+', new_changed);
    lines(
        &mut diff,
        ' ',
        &new[new.len() - same_end..][..context_after],
    );
    diff
}

fn range(from: usize, count: usize) -> String {
    match count {
        // An empty range is named after the line before it.
        0 => format!("{from},0"),
        1 => (from + 1).to_string(),
        _ => format!("{},{count}", from + 1),
    }
}

fn lines(diff: &mut String, sign: char, lines: &[&str]) {
    for line in lines {
        diff.push(sign);
        diff.push_str(line);
        if !line.ends_with('\n') {
            diff.push_str("\n\\ No newline at end of file\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(before: Option<&str>, after: &str, expected: &str) {
        assert_eq!(unified(Path::new("f"), before, after), expected);
    }

    #[test]
    fn differences_read_as_usual() {
        check(Some("a\n"), "a\n", "");
        check(
            None,
            "a\nb\n",
            "--- /dev/null\n+++ f\n@@ -0,0 +1,2 @@\n+a\n+b\n",
        );
        check(
            Some("1\n2\n3\n4\n5\n6\n7\n8\n9\n"),
            "1\n2\n3\n4\nfive\n6\n7\n8\n9\n",
            "--- f\n+++ f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n",
        );
        check(
            Some("{}"),
            "{\n}\n",
            "--- f\n+++ f\n@@ -1 +1,2 @@\n-{}\n\\ No newline at end of file\n+{\n+}\n",
        );
        check(Some("a\n"), "", "--- f\n+++ f\n@@ -1 +0,0 @@\n-a\n");
    }
}
