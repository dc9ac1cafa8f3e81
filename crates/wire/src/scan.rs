//! A single pass over a message that checks that it is JSON, checks its depth, and finds the members that
//! matter.
//!
//! The scan makes routing cheap: it takes less than half the time of a general parser, which would need a
//! second pass for the depth. It only ever accepts. Anything that it is not sure about is left to the careful
//! path, which also produces the error; the fuzz targets compare both with a third parser.

use std::ops::Range;

use crate::{limits, raw};

/// The members of a message that JSON-RPC defines, as they are spelled.
#[derive(Default)]
pub(crate) struct Members<'a> {
    pub(crate) jsonrpc: Option<&'a str>,
    pub(crate) id: Option<&'a str>,
    pub(crate) method: Option<&'a str>,
    pub(crate) params: Option<&'a str>,
    pub(crate) result: Option<&'a str>,
    pub(crate) error: Option<&'a str>,
}

/// Returns the members of the object in `text`. `None` if anything about it is unusual, such as an escape in
/// a key; the slow path then decides.
pub(crate) fn object(text: &str) -> Option<Members<'_>> {
    let mut members = Members::default();
    each_member(text.as_bytes(), |key, value| {
        let member = match key {
            b"jsonrpc" => &mut members.jsonrpc,
            b"id" => &mut members.id,
            b"method" => &mut members.method,
            b"params" => &mut members.params,
            b"result" => &mut members.result,
            b"error" => &mut members.error,
            _ => return Some(()),
        };
        member.replace(text.get(value)?).is_none().then_some(())
    })?;
    Some(members)
}

/// Finds the member with this name in an object, and the number of members with that name; the last one
/// counts. `None` if anything about the object is unusual.
pub(crate) fn find(object: &[u8], name: &str) -> Option<(Option<Range<usize>>, usize)> {
    let mut found = None;
    let mut count = 0;
    each_member(object, |key, value| {
        if key == name.as_bytes() {
            found = Some(value);
            count += 1;
        }
        Some(())
    })?;
    Some((found, count))
}

/// Finds the members with these names in an object. `None` if anything about the object is unusual, such as two members
/// with one name.
pub(crate) fn find_two(object: &[u8], names: [&str; 2]) -> Option<[Option<Range<usize>>; 2]> {
    let mut found = [None, None];
    each_member(object, |key, value| {
        for (name, found) in names.iter().zip(&mut found) {
            if key == name.as_bytes() {
                return found.replace(value).is_none().then_some(());
            }
        }
        Some(())
    })?;
    Some(found)
}

/// Finds the member with the first of these names. `Err` holds a key that is another spelling of one of them,
/// or one of them repeated. `None` if anything about the object is unusual.
pub(crate) fn find_distinct<'t>(
    object: &'t [u8],
    names: &[&str],
) -> Option<Result<Option<Range<usize>>, &'t [u8]>> {
    let mut found = None;
    let mut seen = 0_u32;
    let mut twice: Option<Range<usize>> = None;
    each_member(object, |key, value| {
        for (n, name) in names.iter().enumerate() {
            if key == name.as_bytes() && seen >> n & 1 == 0 {
                seen |= 1 << n;
                if n == 0 {
                    found = Some(value);
                }
                break;
            }
            let is_alike = key.eq_ignore_ascii_case(name.as_bytes())
                || (!key.is_ascii()
                    && std::str::from_utf8(key).is_ok_and(|key| raw::is_alike(key, name)));
            if is_alike {
                let start = key.as_ptr() as usize - object.as_ptr() as usize;
                twice.get_or_insert(start..start + key.len());
                break;
            }
        }
        Some(())
    })?;
    Some(match twice {
        Some(key) => Err(&object[key]),
        None => Ok(found),
    })
}

/// Finds the members of an object that have none of these names, each from its key to the end of its value.
/// `None` if anything about the object is unusual.
pub(crate) fn others(object: &[u8], names: &[&str]) -> Option<Vec<Range<usize>>> {
    let mut kept = Vec::new();
    each_member(object, |key, value| {
        if !names.iter().any(|name| name.as_bytes() == key) {
            let quote = key.as_ptr() as usize - object.as_ptr() as usize - 1;
            kept.push(quote..value.end);
        }
        Some(())
    })?;
    Some(kept)
}

/// Calls `member` for each member of an object, with the key as it is spelled and the range of the value.
#[inline]
fn each_member(
    text: &[u8],
    mut member: impl FnMut(&[u8], Range<usize>) -> Option<()>,
) -> Option<()> {
    let mut scan = Scan { text, at: 0 };
    scan.space();
    scan.expect(b'{')?;
    scan.space();
    if scan.peek() == Some(b'}') {
        scan.at += 1;
    } else {
        loop {
            scan.expect(b'"')?;
            let key = scan.at;
            scan.string()?;
            let key = text.get(key..scan.at - 1)?;
            // An escape may spell any name.
            if key.contains(&b'\\') {
                return None;
            }
            scan.space();
            scan.expect(b':')?;
            scan.space();
            let start = scan.at;
            scan.value()?;
            member(key, start..scan.at)?;
            scan.space();
            match scan.next()? {
                b',' => scan.space(),
                b'}' => break,
                _ => return None,
            }
        }
    }
    scan.space();
    (scan.at == text.len()).then_some(())
}

struct Scan<'a> {
    text: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    #[inline]
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    #[inline]
    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then_some(())
    }

    #[inline]
    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// Scans a value within the message, which is itself one level deep.
    fn value(&mut self) -> Option<()> {
        // One bit for each open level: 1 if it is an object.
        let mut open = 0_u128;
        let mut depth = 1;
        loop {
            match self.next()? {
                b'"' => self.string()?,
                byte @ (b'{' | b'[') => {
                    depth += 1;
                    if depth > limits::DEPTH {
                        return None;
                    }
                    let object = byte == b'{';
                    open = open << 1 | u128::from(object);
                    self.space();
                    if self.peek()? == if object { b'}' } else { b']' } {
                        self.at += 1;
                        open >>= 1;
                        depth -= 1;
                    } else {
                        if object {
                            self.key()?;
                        }
                        continue;
                    }
                }
                b't' => self.word(b"rue")?,
                b'f' => self.word(b"alse")?,
                b'n' => self.word(b"ull")?,
                byte @ (b'-' | b'0'..=b'9') => self.number(byte)?,
                _ => return None,
            }
            // A value has ended, and possibly the array or object around it.
            loop {
                if depth == 1 {
                    return Some(());
                }
                self.space();
                let object = open & 1 == 1;
                match self.next()? {
                    b',' => {
                        self.space();
                        if object {
                            self.key()?;
                        }
                        break;
                    }
                    b'}' if object => {}
                    b']' if !object => {}
                    _ => return None,
                }
                open >>= 1;
                depth -= 1;
            }
        }
    }

    #[inline]
    fn key(&mut self) -> Option<()> {
        self.expect(b'"')?;
        self.string()?;
        self.space();
        self.expect(b':')?;
        self.space();
        Some(())
    }

    #[inline]
    fn word(&mut self, rest: &[u8]) -> Option<()> {
        let found = self.text.get(self.at..)?.starts_with(rest);
        self.at += rest.len();
        found.then_some(())
    }

    /// Scans the rest of a string and its closing quote.
    #[inline]
    fn string(&mut self) -> Option<()> {
        loop {
            self.plain();
            match self.next()? {
                b'"' => return Some(()),
                b'\\' => match self.next()? {
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                    b'u' => {
                        let digits = self.text.get(self.at..self.at + 4)?;
                        if !digits.iter().all(u8::is_ascii_hexdigit) {
                            return None;
                        }
                        self.at += 4;
                    }
                    _ => return None,
                },
                byte if byte < 0x20 => return None,
                // Fewer than eight bytes are left, so `plain` did not skip them.
                _ => {}
            }
        }
    }

    /// Skips to the next quote, backslash or control character, eight bytes at a time.
    #[inline]
    fn plain(&mut self) {
        const ONES: u64 = u64::MAX / 255;
        const HIGH: u64 = ONES << 7;
        while let Some(chunk) = self.text.get(self.at..).and_then(<[u8]>::first_chunk::<8>) {
            let word = u64::from_le_bytes(*chunk);
            let quote = word ^ (ONES * 0x22);
            let slash = word ^ (ONES * 0x5C);
            let found = (quote.wrapping_sub(ONES) & !quote
                | slash.wrapping_sub(ONES) & !slash
                | word.wrapping_sub(ONES * 0x20) & !word)
                & HIGH;
            if found != 0 {
                self.at += found.trailing_zeros() as usize / 8;
                return;
            }
            self.at += 8;
        }
    }

    #[inline]
    fn number(&mut self, first: u8) -> Option<()> {
        let first = if first == b'-' { self.next()? } else { first };
        match first {
            b'0' => {}
            b'1'..=b'9' => self.digits(),
            _ => return None,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.some_digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.some_digits()?;
        }
        Some(())
    }

    #[inline]
    fn digits(&mut self) {
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
    }

    #[inline]
    fn some_digits(&mut self) -> Option<()> {
        let start = self.at;
        self.digits();
        (self.at > start).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_as_they_are_spelled() {
        let text = r#" { "id" : "a\"}" , "x":[{},[],-0.5e+3,true,false,null,"\u00e9"], "result":{"id":1} } "#;
        let members = object(text).unwrap();
        assert_eq!(members.id, Some(r#""a\"}""#));
        assert_eq!(members.result, Some(r#"{"id":1}"#));
        assert_eq!(members.method, None);
        assert!(object("{}").is_some());
    }

    #[test]
    fn unusual_text_is_left_to_the_slow_path() {
        let deep = format!(
            r#"{{"a":{}{}}}"#,
            "[".repeat(limits::DEPTH),
            "]".repeat(limits::DEPTH)
        );
        for text in [
            "",
            "[]",
            "{",
            "{}x",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{"a":[1,]}"#,
            r#"{"a":[}]}"#,
            r#"{"a":01}"#,
            r#"{"a":1.}"#,
            r#"{"a":-}"#,
            r#"{"a":1e}"#,
            r#"{"a":tru}"#,
            r#"{"a":"\x"}"#,
            r#"{"a":"\u00g0"}"#,
            "{\"a\":\"\n\"}",
            "{\"a\":\"unfinished",
            r#"{"id":1,"id":2}"#,
            r#"{"\u0069d":1}"#,
            deep.as_str(),
        ] {
            assert!(object(text).is_none(), "{text}");
        }
    }
}
