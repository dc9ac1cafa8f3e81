//! Whether a URI may have been made from a URI template.

/// Whether a template can expand to this URI. Every expression stands for any text, so the answer is
/// "yes" more often than RFC 6570 would say.
pub(crate) fn matches(template: &str, uri: &str) -> bool {
    let mut literals = literals(template);
    let Some(first) = literals.next() else {
        return true;
    };
    let Some(mut rest) = uri.strip_prefix(first) else {
        return false;
    };
    let mut literals = literals.peekable();
    if literals.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(literal) = literals.next() {
        if literals.peek().is_none() {
            return rest.ends_with(literal);
        }
        match rest.find(literal) {
            Some(at) => rest = &rest[at + literal.len()..],
            None => return false,
        }
    }
    true
}

/// The texts around the expressions: before the first, between each two, after the last.
fn literals(template: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(template);
    std::iter::from_fn(move || {
        let text = rest?;
        let open = text.find('{');
        let close = open.and_then(|open| text[open..].find('}').map(|close| open + close));
        let Some((open, close)) = open.zip(close) else {
            rest = None;
            return Some(text);
        };
        rest = Some(&text[close + 1..]);
        Some(&text[..open])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expansions_match_their_template() {
        for (template, uri) in [
            ("file:///{path}", "file:///a"),
            ("file:///{+path}", "file:///a/b"),
            ("db://{table}/rows/{id}", "db://users/rows/7"),
            (
                "db://{table}/rows/{id}{?fields}",
                "db://users/rows/7?fields=a",
            ),
            ("{+any}", "x:y"),
            ("x:{a}{b}y", "x:y"),
            ("plain:uri", "plain:uri"),
            ("open:{x", "open:{x"),
        ] {
            assert!(matches(template, uri), "{template} {uri}");
        }
        for (template, uri) in [
            ("file:///{path}", "http://a"),
            ("db://{table}/rows/{id}", "db://users/columns/7"),
            ("x:{a}:end", "x:1:endless"),
            ("plain:uri", "plain:uri2"),
        ] {
            assert!(!matches(template, uri), "{template} {uri}");
        }
    }
}
