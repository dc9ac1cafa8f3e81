//! Times for people: in the local time zone, and only as precise as needed.

use jiff::{Timestamp, tz::TimeZone};
use switchboard_terminal::visible::visible_line;

/// A time of the gateway, for people.
pub(super) fn local(time: &str) -> String {
    match time.parse() {
        Ok(time) => moment(time),
        Err(_) => visible_line(time),
    }
}

/// A time in milliseconds since 1970, for people.
pub(super) fn local_millis(millis: u64) -> String {
    let millis = i64::try_from(millis).ok();
    let time = millis.and_then(|millis| Timestamp::from_millisecond(millis).ok());
    time.map_or_else(|| "an unknown time".to_owned(), moment)
}

/// The time of day, and the date if it is another day.
pub(super) fn moment(time: Timestamp) -> String {
    moment_in(&TimeZone::system(), time, Timestamp::now())
}

fn moment_in(zone: &TimeZone, time: Timestamp, now: Timestamp) -> String {
    let at = |time: Timestamp| time.to_zoned(zone.clone());
    let (time, now) = (at(time), at(now));
    let form = if time.date() == now.date() {
        "%H:%M:%S"
    } else {
        "%Y-%m-%d %H:%M"
    };
    time.strftime(form).to_string()
}

/// The age of a time; `None` if it cannot be parsed.
pub(super) fn ago(time: &str) -> Option<String> {
    since(time, Timestamp::now()).map(span)
}

/// Seconds from a time to now; negative if it lies in the future.
pub(super) fn since(time: &str, now: Timestamp) -> Option<i64> {
    let time: Timestamp = time.parse().ok()?;
    Some(now.as_second() - time.as_second())
}

/// A duration in milliseconds, for people: `< 1 ms`, `340 ms`, `2.5 s`, `90 s`.
pub(super) fn took(millis: f64) -> String {
    match millis {
        ..1.0 => "< 1 ms".to_owned(),
        ..999.5 => format!("{millis:.0} ms"),
        ..9_950.0 => format!("{:.1} s", millis / 1_000.0),
        _ => format!("{:.0} s", millis / 1_000.0),
    }
}

/// A duration in seconds, in short: `45s`, `3m`, `2h`, `5d`.
pub(super) fn span(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ ..120 => format!("{seconds}s"),
        seconds @ ..7_200 => format!("{}m", seconds / 60),
        seconds @ ..172_800 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// Parses `90s`, `30m`, `2h` or `7d` into seconds. A bare number might be meant as days.
pub(super) fn seconds(given: &str) -> Result<u64, String> {
    let wrong = || "expected a duration such as 30m, 2h or 7d".to_owned();
    let digits = given.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &given[digits.len()..] {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(wrong()),
    };
    let many: u64 = digits.parse().map_err(|_| wrong())?;
    many.checked_mul(unit)
        .filter(|&seconds| seconds > 0)
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_short() {
        for (seconds, expected) in [
            (-3, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (7_200, "2h"),
            (200_000, "2d"),
        ] {
            assert_eq!(span(seconds), expected);
        }
    }

    #[test]
    fn durations_are_rounded() {
        for (millis, expected) in [
            (0.0, "< 1 ms"),
            (-0.5, "< 1 ms"),
            (339.7, "340 ms"),
            (999.7, "1.0 s"),
            (2_500.0, "2.5 s"),
            (9_960.0, "10 s"),
            (90_400.0, "90 s"),
        ] {
            assert_eq!(took(millis), expected);
        }
    }

    #[test]
    fn times_are_local() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let now = "2026-07-28T12:00:00Z".parse().unwrap();
        let told = |time: &str| moment_in(&zone, time.parse().unwrap(), now);
        assert_eq!(told("2026-07-28T10:15:00.999Z"), "12:15:00");
        // The next day in that zone.
        assert_eq!(told("2026-07-28T22:15:00Z"), "2026-07-29 00:15");
        assert_eq!(told("2026-07-27T22:15:00Z"), "00:15:00");
        assert_eq!(local("\u{1b}[2J"), "⟨U+001B⟩[2J");
    }

    #[test]
    fn times_have_units() {
        for (given, expected) in [
            ("90", None),
            ("90s", Some(90)),
            ("30m", Some(1_800)),
            ("2h", Some(7_200)),
            ("7d", Some(604_800)),
            ("0", None),
            ("h", None),
            ("2 h", None),
            ("-2h", None),
            ("2w", None),
            ("99999999999999999d", None),
        ] {
            assert_eq!(seconds(given).ok(), expected, "{given}");
        }
    }
}
