//! Formats of texts, checked strictly, because the user can correct the text.

use super::field::Format;

impl Format {
    /// The error of a text in this format, if there is one.
    pub(super) fn problem(&self, text: &str) -> Option<&'static str> {
        let (right, wrong) = match self {
            Self::Email => (
                is_email(text),
                "must be an email address, such as name@example.org",
            ),
            Self::Uri => (
                is_uri(text),
                "must be a complete URL, such as https://example.org/",
            ),
            Self::Date => (is_date(text), "must be a date, such as 2026-12-31"),
            Self::DateTime => (
                is_date_time(text),
                "must be a date and time, such as 2026-12-31T23:59:59Z",
            ),
            Self::Other(_) => (true, ""),
        };
        (!right).then_some(wrong)
    }
}

fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else {
        return false;
    };
    let atom = |part: &str| {
        let fits =
            |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte);
        !part.is_empty() && part.bytes().all(fits)
    };
    text.len() <= 254 && local.len() <= 64 && local.split('.').all(atom) && is_domain(domain)
}

fn is_domain(domain: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    domain.len() <= 253 && domain.split('.').all(label)
}

fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let in_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    let mut bytes = rest.bytes();
    let mut escapes_are_whole = true;
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digit = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_hexdigit());
            escapes_are_whole &= digit(bytes.next()) && digit(bytes.next());
        }
    }
    let allowed =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&byte);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(in_scheme)
        && !rest.is_empty()
        // `https://` alone is not an address.
        && rest != "//"
        && rest.bytes().all(allowed)
        && rest.matches('#').count() <= 1
        && escapes_are_whole
}

/// Parses exactly `count` digits.
fn digits(text: &str, count: usize) -> Option<u32> {
    let right = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    right.then(|| text.parse().ok()).flatten()
}

fn is_date(text: &str) -> bool {
    let mut parts = text.split('-');
    let mut next = |count| parts.next().and_then(|part| digits(part, count));
    let (Some(year), Some(month), Some(day)) = (next(4), next(2), next(2)) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    parts.next().is_none() && (1..=days).contains(&day)
}

/// Tests for the format of RFC 3339: with an offset, and with a leap second only where one can occur.
fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else {
        return false;
    };
    let Some(split) = time.find(['Z', 'z', '+', '-']) else {
        return false;
    };
    let (clock, offset) = time.split_at(split);
    let (clock, fraction) = match clock.split_once('.') {
        Some((clock, fraction)) => (clock, Some(fraction)),
        None => (clock, None),
    };
    let fraction_fits = fraction.is_none_or(|fraction| {
        !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit())
    });
    let two = |text: &str| -> Option<(u32, u32)> {
        let (hours, minutes) = text.split_once(':')?;
        let hours = digits(hours, 2).filter(|hours| *hours < 24)?;
        Some((hours, digits(minutes, 2).filter(|minutes| *minutes < 60)?))
    };
    // Minutes east of Greenwich.
    let offset = match offset {
        "Z" | "z" => Some(0),
        other => two(&other[1..]).map(|(hours, minutes)| {
            let away = hours * 60 + minutes;
            if other.starts_with('+') {
                away
            } else {
                (24 * 60 - away) % (24 * 60)
            }
        }),
    };
    let Some((minutes, seconds)) = clock.rsplit_once(':') else {
        return false;
    };
    let (Some((hour, minute)), Some(second), Some(offset)) =
        (two(minutes), digits(seconds, 2), offset)
    else {
        return false;
    };
    let utc = (hour * 60 + minute + 24 * 60 - offset) % (24 * 60);
    let second_fits = second < 60 || (second == 60 && utc == 23 * 60 + 59);
    is_date(date) && fraction_fits && second_fits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn formats_are_checked_strictly() {
        for (format, right, wrong) in [
            (
                Format::Email,
                &[
                    "a@b.org",
                    "first.last+tag@sub.example.org",
                    "o'neil@localhost",
                ][..],
                &[
                    "",
                    "a",
                    "@b",
                    "a@",
                    "a b@c.org",
                    "a@b..org",
                    ".a@b.org",
                    "a@-b.org",
                    "a@b@c",
                ][..],
            ),
            (
                Format::Uri,
                &[
                    "https://example.org/a?b=c#d",
                    "mailto:a@b.org",
                    "urn:x:1",
                    "http://[::1]/",
                ],
                &[
                    "",
                    "example.org",
                    "https:",
                    "https://",
                    "http://a b",
                    "http://a/%zz",
                    "1a:b",
                    "http://ä",
                ],
            ),
            (
                Format::Date,
                &["2026-12-31", "2024-02-29", "2000-02-29"],
                &[
                    "2026-02-29",
                    "1900-02-29",
                    "2026-13-01",
                    "2026-00-10",
                    "2026-1-1",
                    "2026-12-31T",
                    "2026-12-31-",
                ],
            ),
            (
                Format::DateTime,
                &[
                    "2026-12-31T23:59:59Z",
                    "2026-12-31t00:00:00.123456+02:00",
                    "1990-12-31T15:59:60-08:00",
                    "1990-12-31T23:59:60Z",
                ],
                &[
                    "2026-12-31",
                    "2026-12-31T23:59:59",
                    "2026-12-31 23:59:59Z",
                    "2026-12-31T24:00:00Z",
                    "2026-12-31T23:59:60+01:00",
                    "2026-12-31T23:59Z",
                    "2026-12-31T23:59:59.Z",
                    "2026-12-31T23:59:59+2:00",
                    "2026-02-30T00:00:00Z",
                    "2026-12-31T23:59:59é",
                ],
            ),
        ] {
            for text in right {
                assert_eq!(format.problem(text), None, "{text}");
            }
            for text in wrong {
                assert!(format.problem(text).is_some(), "{format:?} {text}");
            }
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in "[0-9TtZz:.+@é%-]{0,30}") {
            for format in [Format::Email, Format::Uri, Format::Date, Format::DateTime] {
                format.problem(&text);
            }
        }
    }
}
