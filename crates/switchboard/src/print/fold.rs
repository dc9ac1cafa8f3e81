//! Text in lines that fit a terminal. Words stay whole, and so do commands in backquotes: both can be copied.

/// Further lines of a paragraph stand so much to the right of its first, where nothing else is wanted.
pub(crate) const HANGING: usize = 2;

/// The text in lines of at most `width` characters. On its first line `taken` of them are used already. What a paragraph
/// goes on with is indented by `indent`, beside the paragraph's own indentation.
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
    let own = paragraph.len() - paragraph.trim_start_matches(' ').len();
    let mut line = " ".repeat(own);
    let mut length = taken + own;
    let mut is_empty = true;
    for piece in pieces(paragraph.trim()) {
        let more = piece.chars().count();
        if !is_empty && length + 1 + more > width {
            lines.push(std::mem::replace(&mut line, " ".repeat(own + indent)));
            length = own + indent;
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
            length += 1;
        }
        line.push_str(piece);
        length += more;
        is_empty = false;
    }
    lines.push(line);
}

/// What is not torn: words, and what stands between backquotes.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut is_quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '`' => is_quoted = !is_quoted && text[at + 1..].contains('`'),
            ' ' if !is_quoted => {
                pieces.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    pieces.push(&text[start..]);
    pieces.retain(|piece| !piece.is_empty());
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
        // Nothing is lost of a word that has no room.
        assert_eq!(fold("a/very/long/path x", 8, 0, 0), "a/very/long/path\nx");
    }

    #[test]
    fn commands_stay_whole() {
        assert_eq!(
            fold("then run `switchboard restart a` once", 24, 0, 0),
            "then run\n`switchboard restart a`\nonce"
        );
        // One quote alone holds nothing together.
        assert_eq!(fold("a ` b c", 4, 0, 0), "a `\nb c");
    }
}
