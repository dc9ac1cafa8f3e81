//! Rust files as the rules read them: comments, literals and tests are blanked out, and every byte keeps its
//! position.

use super::has_extension;

/// One file below `crates/*/src`.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) source: Source,
}

/// Three versions of a file, all of its length.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// Comments and the contents of literals are blank.
    pub(super) all: String,
    /// As `all`, with tests blank too.
    pub(super) code: String,
    /// As `code`, with the contents of literals.
    pub(crate) text: String,
}

impl File {
    /// Reads a file that belongs to the sources of a crate and is not a test.
    pub(crate) fn new(path: &str, text: &str) -> Option<Self> {
        let (_, inside) = place(path)?;
        let is_test = inside
            .split('/')
            .any(|part| matches!(part, "tests" | "tests.rs"));
        (has_extension(path, "rs") && !is_test).then(|| Self {
            path: path.to_owned(),
            source: Source::new(text),
        })
    }

    /// The directory of the crate, and the path below its `src`.
    pub(super) fn place(&self) -> (&str, &str) {
        place(&self.path).unwrap_or_default()
    }
}

fn place(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix("crates/")?.split_once("/src/")
}

impl Source {
    pub(super) fn new(file: &str) -> Self {
        let mut all = String::with_capacity(file.len());
        let mut text = String::with_capacity(file.len());
        let mut rest = file;
        while !rest.is_empty() {
            let (kind, length) = token(rest);
            let (token, after) = rest.split_at(length);
            let push = |onto: &mut String, is_shown| {
                if is_shown {
                    onto.push_str(token);
                } else {
                    onto.extend(blanks(token));
                }
            };
            push(&mut all, kind == Kind::Code);
            push(&mut text, kind != Kind::Comment);
            rest = after;
        }
        let mut code = all.clone();
        let mut at = 0;
        while let Some(start) = all[at..].find("#[cfg(test)]").map(|ahead| at + ahead) {
            at = start + item(&all[start..]);
            let blank: String = blanks(&all[start..at]).collect();
            code.replace_range(start..at, &blank);
            text.replace_range(start..at, &blank);
        }
        Self { all, code, text }
    }
}

/// The positions in `text` where `word` is a whole word. An edge of `word` that is not a letter needs no
/// boundary.
pub(super) fn positions(text: &str, word: &str) -> impl Iterator<Item = usize> {
    text.match_indices(word).filter_map(move |(start, _)| {
        let end = start + word.len();
        let joins =
            |left: &str, right: &str| left.ends_with(is_of_word) && right.starts_with(is_of_word);
        let is_part = joins(&text[..start], word) || joins(word, &text[end..]);
        (!is_part).then_some(start)
    })
}

/// The line number of a position.
pub(super) fn line(text: &str, position: usize) -> usize {
    1 + text[..position].matches('\n').count()
}

pub(super) fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The comments of a file without their slashes, each with the line that it starts on. Lines of the same kind that
/// follow each other are one comment.
pub(super) fn comments(file: &str) -> Vec<(usize, String)> {
    let mut comments: Vec<(usize, String)> = Vec::new();
    // The slashes and the line of the comment line before, if nothing else stands on that line.
    let mut before: Option<(&str, usize)> = None;
    let mut at = 0;
    while at < file.len() {
        let (kind, length) = token(&file[at..]);
        let text = &file[at..at + length];
        if kind == Kind::Comment && text.starts_with("//") {
            let slashes = ["///", "//!", "//"];
            let slashes = slashes.into_iter().find(|it| text.starts_with(it));
            let slashes = slashes.unwrap_or_default();
            let number = line(file, at);
            let is_alone = file[..at].rsplit('\n').next().is_some_and(is_blank);
            let said = text[slashes.len()..].trim();
            match comments.last_mut() {
                Some((_, comment)) if is_alone && before == Some((slashes, number - 1)) => {
                    comment.push(' ');
                    comment.push_str(said);
                }
                _ => comments.push((number, said.to_owned())),
            }
            before = is_alone.then_some((slashes, number));
        }
        at += length;
    }
    comments
}

/// The contents of the strings in a text without comments, as they are spelled in the source.
pub(crate) fn strings(text: &str) -> impl Iterator<Item = &str> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < text.len() {
            let (kind, length) = token(&text[at..]);
            let token = &text[at..at + length];
            at += length;
            let inner = token.trim_start_matches(['r', 'b', 'c']).trim_matches('#');
            let inner = inner
                .strip_prefix('"')
                .and_then(|inner| inner.strip_suffix('"'));
            if let (Kind::Literal, Some(inner)) = (kind, inner) {
                return Some(inner);
            }
        }
        None
    })
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Code,
    Comment,
    Literal,
}

/// The kind and length of the token at the start of a text.
fn token(rest: &str) -> (Kind, usize) {
    let until = |end: Option<usize>| end.unwrap_or(rest.len());
    match rest.as_bytes() {
        [b'/', b'/', ..] => (Kind::Comment, until(rest.find('\n'))),
        [b'/', b'*', ..] => (Kind::Comment, comment(rest)),
        [b'"', ..] => (Kind::Literal, quoted(rest)),
        [b'\'', b'\\', ..] => (Kind::Literal, quoted(rest)),
        [b'\'', ..] => {
            // A lifetime has no closing quote.
            let mut after = rest.char_indices().skip(2);
            match after.next() {
                Some((end, '\'')) => (Kind::Literal, end + 1),
                _ => (Kind::Code, 1),
            }
        }
        _ if rest.starts_with(is_of_word) => {
            let end = until(rest.find(|letter| !is_of_word(letter)));
            let raw = matches!(&rest[..end], "r" | "br" | "cr").then(|| raw(&rest[end..]));
            match raw.flatten() {
                Some(length) => (Kind::Literal, end + length),
                None => (Kind::Code, end),
            }
        }
        _ => (Kind::Code, rest.chars().next().map_or(1, char::len_utf8)),
    }
}

/// The length of a comment, which may nest.
fn comment(text: &str) -> usize {
    let (mut depth, mut at) = (1, 2);
    while let Some(ahead) = text[at..].find("*/").map(|end| end + 2) {
        depth += text[at..at + ahead].matches("/*").count();
        depth -= 1;
        at += ahead;
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// The length of a literal that ends with its opening quote.
fn quoted(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        at += match byte {
            b'\\' => 2,
            byte if *byte == bytes[0] => return at + 1,
            _ => 1,
        };
    }
    text.len()
}

/// The length of a raw string after its prefix.
fn raw(text: &str) -> Option<usize> {
    let string = text.trim_start_matches('#');
    let hashes = &text[..text.len() - string.len()];
    let end = string.strip_prefix('"')?.find(&format!("\"{hashes}"));
    Some(end.map_or(text.len(), |end| end + 2 + 2 * hashes.len()))
}

/// The length of an item or statement, with its attributes.
fn item(code: &str) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' if depth == 0 => return at,
            b'}' if depth == 1 => return at + 1,
            b')' | b']' | b'}' => depth -= 1,
            b';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

fn blanks(text: &str) -> impl Iterator<Item = char> {
    let blank = |byte| if byte == b'\n' { '\n' } else { ' ' };
    text.bytes().map(blank)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The remaining words.
    fn words(text: &str) -> String {
        let words: Vec<&str> = text.split_whitespace().collect();
        words.join(" ")
    }

    #[test]
    fn comments_and_literals_are_not_code() {
        for (file, code) in [
            ("a // b\nc", "a c"),
            ("a /* b /* c */ d */ e", "a e"),
            ("a /*/ b */ c /* d", "a c"),
            (r#"a("b \" // c", 'd', '"') e"#, "a( , , ) e"),
            (r"x('\'', '\\', b'é', 'é') y", "x( , , b , ) y"),
            ("f::<'a>(&'b c, 'd')", "f::<'a>(&'b c, )"),
            (r##"a r#"b "c" d"# e br"f\" g"##, "a e g"),
            (r#"r#type r"" number""#, "r#type number"),
            ("é \"é\" é", "é é"),
        ] {
            let source = Source::new(file);
            assert_eq!(words(&source.code), code, "{file}");
            for text in [&source.all, &source.code, &source.text] {
                assert_eq!(text.len(), file.len(), "{file}");
            }
        }
        assert_eq!(words(&Source::new("a(\"b\") // c").text), "a(\"b\")");
    }

    #[test]
    fn tests_are_blanked_anywhere_in_a_file() {
        let file = "a\n#[cfg(test)]\nfn b(c: [u8; 2]) { \"}\"; { d } }\ne\n#[cfg(test)]\n#[path = \"f\"]\n\
                    mod g;\nh { i; #[cfg(test)] j }\n#[cfg(test)]\nmod tests { k }\nl";
        let source = Source::new(file);
        assert_eq!(words(&source.code), "a e h { i; } l");
        assert_eq!(source.code, source.text);
        assert!(source.all.contains("mod tests { k }"));
        assert_eq!(line(&source.code, source.code.len()), 11);
    }

    #[test]
    fn only_whole_words_are_found() {
        let found = |word| positions("unsafe_code unsafe a::now::now", word).count();
        assert_eq!((found("unsafe"), found("::now"), found("a::no")), (1, 2, 0));
    }

    #[test]
    fn only_crate_sources_are_read() {
        let place = |path| File::new(path, "").map(|file| file.place() == ("a", "b/c.rs"));
        assert_eq!(place("crates/a/src/b/c.rs"), Some(true));
        for path in [
            "crates/a/src/b/tests.rs",
            "crates/a/src/b.sql",
            "crates/a/tests/it/c.rs",
            "xtask/src/b.rs",
        ] {
            assert_eq!(place(path), None, "{path}");
        }
    }
}
