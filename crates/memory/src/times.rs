//! Times: microseconds since 1970 inside, RFC 3339 outside.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::{Timestamp, civil, tz::TimeZone};

/// The current time.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    })
}

/// Parses a time: RFC 3339, in UTC if it has no offset, or a date, which stands for its first
/// moment.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(time.as_microsecond());
    }
    let civil = text
        .parse::<civil::DateTime>()
        .or_else(|_| text.parse::<civil::Date>().map(civil::Date::into))
        .ok()?;
    let time = civil.to_zoned(TimeZone::UTC).ok()?;
    Some(time.timestamp().as_microsecond())
}

/// Formats a time as briefly as possible without losing precision.
pub(crate) fn spell(time: i64) -> String {
    Timestamp::from_microsecond(time)
        .map_or_else(|_| "out of range".to_owned(), |time| time.to_string())
}

/// Returns the date of a time.
pub(crate) fn day(time: i64) -> String {
    let spelled = spell(time);
    spelled.split('T').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed_and_formatted() {
        for text in ["2023-05-08T13:56:00Z", "2023-05-08T13:56:00.000001Z"] {
            assert_eq!(spell(parse(text).unwrap()), text);
        }
        let noon = parse("2023-05-08T12:00:00Z");
        assert_eq!(parse("2023-05-08T12:00:00"), noon);
        assert_eq!(parse(" 2023-05-08T14:00:00+02:00 "), noon);
        assert_eq!(parse("2023-05-08"), parse("2023-05-08T00:00:00Z"));
        for wrong in ["", "yesterday", "2023-13-01", "99999999999"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        assert_eq!(day(noon.unwrap()), "2023-05-08");
    }
}
