//! Word wrapping for terminals. Words and commands in backquotes are never split, so both can be copied.

/// The usual indentation of continuation lines.
pub(crate) const HANGING: usize = 2;

/// Wraps a text into lines of at most `width` characters. The first line already has `taken` of them.
/// Continuation lines of a paragraph get its own indentation plus `indent`.
pub(crate) fn fold(text: &str, width: usize, taken: usize, indent: usize) -> String {
    let mut lines = Vec::new();
    for (n, paragraph) in text.split('\n').enumerate() {
        let taken = if n == 0 { taken } else { 0 };
        if taken + paragraph.chars().count() <= width {
            lines.push(paragraph.to_owned());
        } else {
            fold_paragraph(paragraph, width, taken, indent, &mut lines);
        }
    }
    lines.join("\n")
}

fn fold_paragraph(
    paragraph: &str,
    width: usize,
    taken: usize,
    indent: usize,
    lines: &mut Vec<String>,
) {
    let text = paragraph.trim_start_matches(' ');
    // Deep indentation is reduced: otherwise a server could force one word per line.
    let own = (paragraph.len() - text.len()).min(width / 4);
    let more = " ".repeat((own + indent).min(width / 2));
    let mut line = " ".repeat(own);
    let mut length = taken + own;
    let mut is_empty = true;
    for (blanks, piece) in pieces(text.trim_end_matches(' ')) {
        let chars = piece.chars().count();
        if !is_empty && length + blanks + chars > width {
            lines.push(std::mem::replace(&mut line, more.clone()));
            length = more.len();
            is_empty = true;
        }
        if !is_empty {
            line.extend(std::iter::repeat_n(' ', blanks));
            length += blanks;
        }
        line.push_str(piece);
        length += chars;
        is_empty = false;
    }
    lines.push(line);
}

/// Splits a text into words and quoted commands, each with the number of spaces before it.
fn pieces(text: &str) -> Vec<(usize, &str)> {
    let mut pieces = Vec::new();
    let (mut start, mut blanks) = (0, 0);
    let mut is_quoted = false;
    // Position of the last backquote; an unpaired one does not quote.
    let last = text.rfind('`');
    for (at, c) in text.char_indices() {
        match c {
            '`' => is_quoted = !is_quoted && last > Some(at),
            ' ' if !is_quoted => {
                if start < at {
                    pieces.push((blanks, &text[start..at]));
                    blanks = 0;
                }
                blanks += 1;
                start = at + 1;
            }
            _ => {}
        }
    }
    if start < text.len() {
        pieces.push((blanks, &text[start..]));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        let text = "one two three four\n  five six seven";
        assert_eq!(
            fold(text, 12, 7, HANGING),
            "one\n  two three\n  four\n  five six\n    seven"
        );
        assert_eq!(fold("short", 12, 0, 0), "short");
        // A word longer than the line is kept whole.
        assert_eq!(fold("a/very/long/path x", 8, 0, 0), "a/very/long/path\nx");
    }

    #[test]
    fn spaces_within_a_line_are_kept() {
        assert_eq!(fold("a  b\tc   d e", 8, 0, 0), "a  b\tc\nd e");
    }

    #[test]
    fn deep_indentation_does_not_inflate_output() {
        let deep = format!("{}{}", " ".repeat(10_000), "a ".repeat(10_000));
        let folded = fold(&deep, 80, 0, HANGING);
        assert!(folded.len() < 2 * deep.len(), "{}", folded.len());
        assert!(folded.lines().all(|line| line.len() <= 80));
    }

    #[test]
    fn quoted_commands_are_not_split() {
        assert_eq!(
            fold("then run `switchboard restart a` once", 24, 0, 0),
            "then run\n`switchboard restart a`\nonce"
        );
        // An unpaired backquote does not quote.
        assert_eq!(fold("a ` b c", 4, 0, 0), "a `\nb c");
    }
}
