//! Differences between two texts, in the format of `diff -u`.

use std::path::Path;

use similar::TextDiff;

/// The most lines of the shorter text. Longer texts are not compared: if all lines differ, a comparison
/// at this limit already takes seconds.
const LINES: usize = 1 << 18;

/// The unified diff; empty if the texts are equal. `None` stands for a file that does not exist.
pub fn unified(file: &Path, before: Option<&str>, after: &str) -> String {
    let old: Vec<&str> = before.unwrap_or("").split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    if old.len().min(new.len()) > LINES {
        return unified(file, before, "") + &unified(file, None, after);
    }
    let path = file.display().to_string();
    TextDiff::configure()
        .newline_terminated(true)
        .diff_slices(&old, &new)
        .unified_diff()
        .header(before.map_or("/dev/null", |_| &path), &path)
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(before: Option<&str>, after: &str, expected: &str) {
        assert_eq!(unified(Path::new("f"), before, after), expected);
    }

    #[test]
    fn diff_has_unified_format() {
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

    #[test]
    fn long_texts_are_shown_without_comparison() {
        let before = "a\n".repeat(LINES + 1);
        let after = format!("{before}b\n");
        let diff = unified(Path::new("f"), Some(&before), &after);
        let removed = before.replace('a', "-a");
        let added = after.replace('a', "+a").replace('b', "+b");
        assert_eq!(
            diff,
            format!(
                "--- f\n+++ f\n@@ -1,{} +0,0 @@\n{removed}--- /dev/null\n+++ f\n@@ -0,0 +1,{} @@\n{added}",
                LINES + 1,
                LINES + 2
            )
        );
    }
}
