//! Shortens structured content that has to stay, without changing its shape.
//!
//! A client that knows the schema of a tool's structured content rejects a result without it, or with
//! another shape. So every member stays; arrays lose their last elements and long texts their ends, the
//! largest first. Nothing else is touched, so the value may still exceed the budget.

use switchboard_wire::Raw;

use crate::border::border;
use crate::limits::{SHORT_TEXT, SHRINK_DEPTH};

/// Marks the end of a text that was cut.
const MORE: &str = "…";

/// Shortens the value to about `bytes`, if possible.
pub(crate) fn shrink(value: &Raw, bytes: usize) -> Raw {
    at_depth(value, bytes, 0)
}

fn at_depth(value: &Raw, bytes: usize, depth: usize) -> Raw {
    if value.as_bytes().len() <= bytes || depth > SHRINK_DEPTH {
        return value.clone();
    }
    let shrunk = match value.as_bytes().first() {
        Some(b'[') => array(value, bytes, depth),
        Some(b'{') => object(value, bytes, depth),
        Some(b'"') => text(value, bytes),
        _ => None,
    };
    shrunk.unwrap_or_else(|| value.clone())
}

/// Keeps the first elements, at least one if there is any.
fn array(value: &Raw, bytes: usize, depth: usize) -> Option<Raw> {
    let elements = value.elements()?;
    let mut left = bytes.saturating_sub(2);
    let mut kept = Vec::new();
    for element in elements {
        let size = element.as_bytes().len() + 1;
        if size > left {
            if kept.is_empty() {
                kept.push(at_depth(&element, left, depth + 1));
            }
            break;
        }
        left -= size;
        kept.push(element);
    }
    Some(Raw::array(kept))
}

/// Keeps all members: the small ones as they are, and the large ones share the remaining room.
fn object(value: &Raw, bytes: usize, depth: usize) -> Option<Raw> {
    let members = value.members()?;
    let size = |member: &(String, Raw)| member.0.len() + member.1.as_bytes().len() + 4;
    let mut left = bytes;
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|place| size(&members[*place]));
    let mut shares = vec![0; members.len()];
    for (n, place) in order.iter().enumerate() {
        let share = left / (members.len() - n);
        let taken = size(&members[*place]).min(share);
        shares[*place] = taken.saturating_sub(members[*place].0.len() + 4);
        left -= taken;
    }
    let shrunk = members.iter().zip(shares).map(|((name, value), share)| {
        let value = at_depth(value, share, depth + 1);
        (&**name, value)
    });
    Some(Raw::object(shrunk))
}

/// Keeps the beginning of a text, unless the text is short.
fn text(value: &Raw, bytes: usize) -> Option<Raw> {
    let text = value.to_text()?;
    if text.len() <= SHORT_TEXT {
        return None;
    }
    // Escapes make the encoded text longer, so the limit may have to shrink.
    let mut most = bytes.saturating_sub(MORE.len() + 2).max(SHORT_TEXT);
    loop {
        let end = border(&text, false, 0, most);
        let shrunk = Raw::string(&(text[..end].to_owned() + MORE));
        if shrunk.as_bytes().len() <= bytes.max(2 * SHORT_TEXT) || most <= SHORT_TEXT {
            return Some(shrunk);
        }
        most = (most / 2).max(SHORT_TEXT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Raw {
        Raw::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn arrays_lose_their_last_elements() {
        let rows: Vec<_> = (0..1000).map(|n| format!(r#"{{"n":{n}}}"#)).collect();
        let value = raw(&format!(
            r#"{{"total":1000,"rows":[{}],"next":"abc"}}"#,
            rows.join(",")
        ));
        let shrunk = shrink(&value, 500);
        assert!(shrunk.as_bytes().len() <= 500, "{shrunk}");
        assert!(
            shrunk
                .as_str()
                .starts_with(r#"{"total":1000,"rows":[{"n":0},{"n":1},"#)
        );
        assert!(shrunk.as_str().ends_with(r#"],"next":"abc"}"#));
        assert_eq!(shrink(&value, 100_000), value);
    }

    #[test]
    fn one_element_stays_and_is_shortened_itself() {
        let value = raw(&format!(
            r#"[{{"id":1,"text":"{}"}}]"#,
            "word ".repeat(1000)
        ));
        let shrunk = shrink(&value, 1000);
        assert!(shrunk.as_bytes().len() <= 1000);
        let text = shrunk.elements().unwrap()[0]
            .member("text")
            .unwrap()
            .to_text()
            .unwrap();
        assert!(text.starts_with("word word") && text.ends_with("…"));
    }

    #[test]
    fn values_without_a_long_tail_stay() {
        for value in [
            r#"{"a":123456789012345678901234567890}"#,
            r#"{"status":"a short text"}"#,
            "true",
        ] {
            assert_eq!(shrink(&raw(value), 3), raw(value));
        }
    }

    #[test]
    fn large_members_share_the_remaining_room() {
        let list = format!("[{}]", vec!["1234567"; 1000].join(","));
        let value = raw(&format!(r#"{{"a":{list},"b":{list},"small":true}}"#));
        let shrunk = shrink(&value, 1000);
        let size = |name| shrunk.member(name).unwrap().as_bytes().len();
        assert!(size("a") > 400 && size("b") > 400, "{shrunk}");
        assert_eq!(shrunk.member("small").unwrap().as_str(), "true");
    }
}
