//! The difference between two texts in unified form. An import changes one place, so that everything
//! between the first and the last line that differ makes one hunk.

use std::{fmt::Write as _, path::Path};

const CONTEXT: usize = 3;

/// The unified difference. `None` is a file that is not there.
pub(crate) fn unified(file: &Path, before: Option<&str>, after: &str) -> String {
    let old: Vec<&str> = before.unwrap_or("").split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let end = (old[start..].iter().rev().zip(new[start..].iter().rev()))
        .take_while(|(a, b)| a == b)
        .count();
    let first = start.saturating_sub(CONTEXT);
    let behind = end.min(CONTEXT);
    let (old_end, new_end) = (old.len() - end, new.len() - end);

    let path = file.display();
    let from = before.map_or_else(|| "/dev/null".to_owned(), |_| path.to_string());
    let (old_range, new_range) = (
        range(first, old_end + behind - first),
        range(first, new_end + behind - first),
    );
    let mut diff = format!("--- {from}\n+++ {path}\n@@ -{old_range} +{new_range} @@\n");
    lines(&mut diff, ' ', &old[first..start]);
    lines(&mut diff, '-', &old[start..old_end]);
    lines(&mut diff, '+', &new[start..new_end]);
    lines(&mut diff, ' ', &new[new_end..new_end + behind]);
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
        // Writing to a string cannot fail.
        let _ = writeln!(diff, "{sign}{}", line.trim_end_matches('\n'));
        if !line.ends_with('\n') {
            diff.push_str("\\ No newline at end of file\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_read_as_usual() {
        let check = |before: Option<&str>, after: &str, expected: &str| {
            assert_eq!(unified(Path::new("f"), before, after), expected);
        };
        check(
            None,
            "a\nb",
            "--- /dev/null\n+++ f\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n",
        );
        check(
            Some("1\n2\n3\n4\n5\n6\n7\n8\n9\n"),
            "1\n2\n3\n4\nfive\n6\n7\n8\n9\n",
            "--- f\n+++ f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n",
        );
    }
}
