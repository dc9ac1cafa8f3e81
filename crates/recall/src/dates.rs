//! Dates in a query: `8 May 2023`, `2023-05-08`, `in May`, `last week`, `3 days ago`; and dates in memories.

use rustc_hash::FxHashMap;

use crate::limits;

/// The dates that memories name, by place. Few memories name any.
pub(crate) type Written = FxHashMap<u32, Box<[When]>>;

/// A period of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// From the first time up to, but not including, the second, in microseconds since 1970.
    Between(i64, i64),
    /// A month of any year, or a day in it.
    Yearly(u8, Option<u8>),
}

const DAY: i64 = 86_400_000_000;
/// People talk about the past: a memory from up to this long after a date may be about it, and counts half.
const AFTER: i64 = 7 * DAY;
const LATER: f32 = 0.5;
/// The most dates of one text.
const DATES: usize = 8;

impl When {
    /// Returns the weight of a time: 1 inside the period, one half shortly after it, and 0 otherwise.
    pub(crate) fn share(self, time: i64) -> f32 {
        let is_in = |time: i64| match self {
            Self::Between(start, end) => (start..end).contains(&time),
            Self::Yearly(month, day) => {
                let (_, of_time, day_of_time) = civil(time.div_euclid(DAY));
                of_time == month && day.is_none_or(|day| day == day_of_time)
            }
        };
        if is_in(time) {
            return 1.0;
        }
        let is_later = match self {
            Self::Between(_, end) => (end..end.saturating_add(AFTER)).contains(&time),
            Self::Yearly(..) => (1..=7).any(|days| is_in(time.saturating_sub(days * DAY))),
        };
        if is_later { LATER } else { 0.0 }
    }

    /// Returns `true` if it overlaps one of these.
    pub(crate) fn is_among(self, others: &[Self]) -> bool {
        others.iter().any(|other| match (self, *other) {
            (Self::Between(start, end), Self::Between(other_start, other_end)) => {
                start < other_end && other_start < end
            }
            (one, other) => one == other,
        })
    }

    /// Returns `true` if it is no longer than a month.
    fn is_short(self) -> bool {
        match self {
            Self::Between(start, end) => end - start <= 31 * DAY,
            Self::Yearly(..) => true,
        }
    }
}

/// Returns the days and months that a memory names. Relative dates are left out: they mean a time shortly
/// before the memory's own.
pub(crate) fn written_in(text: &str) -> Vec<When> {
    // Most texts have no digit, and are skipped.
    if !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return Vec::new();
    }
    let mut dates = find(text, None);
    dates.retain(|date| date.is_short());
    dates
}

/// Returns the dates in a query made at the time `now`.
pub(crate) fn dates(text: &str, now: i64) -> Vec<When> {
    find(text, Some(now))
}

fn find(text: &str, now: Option<i64>) -> Vec<When> {
    let words: Vec<Word<'_>> = text[..text.floor_char_boundary(limits::QUERY_BYTES)]
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(Word)
        .collect();
    let mut dates = Vec::new();
    let mut rest = &words[..];
    let mut before: Option<Word<'_>> = None;
    while let Some(first) = rest.first() {
        let found = written(rest, before)
            .or_else(|| relative(rest, now?))
            .filter(|_| dates.len() < DATES);
        let length = match found {
            Some((when, length)) => {
                if !dates.contains(&when) {
                    dates.push(when);
                }
                length
            }
            None => 1,
        };
        before = Some(*first);
        rest = &rest[length..];
    }
    dates
}

#[derive(Debug, Clone, Copy)]
struct Word<'a>(&'a str);

impl Word<'_> {
    fn is(self, other: &str) -> bool {
        self.0.eq_ignore_ascii_case(other)
    }

    fn number(self) -> Option<u16> {
        self.0.parse().ok()
    }

    fn year(self) -> Option<i64> {
        let is_year = self.0.len() == 4 && (self.0.starts_with("19") || self.0.starts_with("20"));
        self.number().filter(|_| is_year).map(i64::from)
    }

    fn day(self) -> Option<u8> {
        let digits = ["st", "nd", "rd", "th"]
            .iter()
            .find_map(|ending| self.0.strip_suffix(ending));
        let day: u8 = digits.unwrap_or(self.0).parse().ok()?;
        (1..=31).contains(&day).then_some(day)
    }

    fn month(self) -> Option<u8> {
        let is_long = |name: &str| self.is(name) || (self.0.len() == 3 && self.is(&name[..3]));
        let at = MONTHS.iter().position(|name| is_long(name))?;
        u8::try_from(at + 1).ok()
    }

    fn weekday(self) -> Option<i64> {
        let at = WEEKDAYS.iter().position(|name| self.is(name))?;
        i64::try_from(at).ok()
    }
}

pub(crate) const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// Starting with Monday.
pub(crate) const WEEKDAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

/// Words before the name of a month that mark it as a month.
const BEFORE_MONTH: [&str; 12] = [
    "in", "of", "during", "since", "until", "by", "early", "mid", "late", "last", "this", "next",
];

/// Returns an absolute date at the start of these words, and the number of words it takes.
fn written(words: &[Word<'_>], before: Option<Word<'_>>) -> Option<(When, usize)> {
    let word = |at: usize| words.get(at).copied();
    let first = word(0)?;
    // 2023-05-08, 2023-05
    if let Some(year) = first.year() {
        let month = word(1)
            .and_then(Word::number)
            .filter(|_| word(1).is_some_and(|word| word.0.len() == 2));
        if let Some(month) = month.and_then(|month| u8::try_from(month).ok()) {
            let day = word(2).filter(|word| word.0.len() == 2).and_then(Word::day);
            if let Some(when) = day.and_then(|day| day_of(year, month, day)) {
                return Some((when, 3));
            }
            if let Some(when) = month_of(year, month) {
                return Some((when, 2));
            }
        }
        return Some((
            When::Between(start_of(year, 1, 1)?, start_of(year + 1, 1, 1)?),
            1,
        ));
    }
    // 8 May 2023, 8th of May
    if let Some(day) = first.day() {
        let of = usize::from(word(1).is_some_and(|word| word.is("of")));
        let month = word(1 + of)?.month()?;
        return Some(match word(2 + of).and_then(Word::year) {
            Some(year) => (day_of(year, month, day)?, 3 + of),
            None => (When::Yearly(month, Some(day)), 2 + of),
        });
    }
    // May 8, 2023, May 2023, in May
    let month = first.month()?;
    if let Some(year) = word(1).and_then(Word::year) {
        return Some((month_of(year, month)?, 2));
    }
    if let Some(day) = word(1).and_then(Word::day) {
        return Some(match word(2).and_then(Word::year) {
            Some(year) => (day_of(year, month, day)?, 3),
            None => (When::Yearly(month, Some(day)), 2),
        });
    }
    // On its own it may be a verb or a person's name.
    let is_month = before.is_some_and(|before| BEFORE_MONTH.iter().any(|word| before.is(word)));
    is_month.then_some((When::Yearly(month, None), 1))
}

/// Returns a date relative to `now`, and the number of words it takes.
fn relative(words: &[Word<'_>], now: i64) -> Option<(When, usize)> {
    let today = now.div_euclid(DAY);
    let (first, second) = (words.first()?, words.get(1));
    let days = |from: i64, until: i64| {
        let start = today.checked_add(from)?.checked_mul(DAY)?;
        Some(When::Between(
            start,
            start.checked_add((until - from).checked_mul(DAY)?)?,
        ))
    };
    for (name, offset) in [("today", 0), ("yesterday", -1), ("tomorrow", 1)] {
        if first.is(name) {
            return Some((days(offset, offset + 1)?, 1));
        }
    }
    let offsets = [("last", -1), ("this", 0), ("next", 1)];
    if let Some((_, offset)) = offsets.iter().find(|(name, _)| first.is(name)) {
        let second = second?;
        let (year, month, _) = civil(today);
        let monday = -weekday(today);
        let when = if second.is("week") {
            days(monday + 7 * offset, monday + 7 * offset + 7)?
        } else if second.is("month") {
            let months = year * 12 + i64::from(month) - 1 + offset;
            month_of(
                months.div_euclid(12),
                u8::try_from(months.rem_euclid(12) + 1).ok()?,
            )?
        } else if second.is("year") {
            let year = year + offset;
            When::Between(start_of(year, 1, 1)?, start_of(year + 1, 1, 1)?)
        } else {
            let day = second.weekday()?;
            let back = (weekday(today) - day - 1).rem_euclid(7) + 1;
            let offset = if *offset < 0 { -back } else { 7 - back };
            days(offset, offset + 1)?
        };
        return Some((when, 2));
    }
    // 3 days ago
    if words.get(2).is_some_and(|word| word.is("ago")) {
        let count = i64::from(first.number().or_else(|| first.is("a").then_some(1))?);
        let unit = second?.0.trim_end_matches('s');
        let length = match unit {
            "day" => 1,
            "week" => 7,
            "month" => 30,
            "year" => 365,
            _ => return None,
        };
        // "Three weeks ago" does not mean an exact day.
        let slack = length / 2;
        let when = days(-count * length - slack, -count * length + slack + 1)?;
        return Some((when, 3));
    }
    None
}

fn day_of(year: i64, month: u8, day: u8) -> Option<When> {
    let start = start_of(year, month, day)?;
    Some(When::Between(start, start.checked_add(DAY)?))
}

fn month_of(year: i64, month: u8) -> Option<When> {
    let next = if month == 12 {
        (year + 1, 1)
    } else {
        (year, month + 1)
    };
    Some(When::Between(
        start_of(year, month, 1)?,
        start_of(next.0, next.1, 1)?,
    ))
}

/// Returns the first microsecond of a day, or `None` if the date does not exist.
fn start_of(year: i64, month: u8, day: u8) -> Option<i64> {
    if !(1..=12).contains(&month) || !(-200_000..=200_000).contains(&year) {
        return None;
    }
    // Days since 1970, in years that begin in March, so that the leap day is the last.
    let shifted = year - i64::from(month <= 2);
    let era = shifted.div_euclid(400);
    let of_era = shifted.rem_euclid(400);
    let of_year = (153 * ((i64::from(month) + 9) % 12) + 2) / 5 + i64::from(day) - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    (civil(days) == (year, month, day)).then_some(days * DAY)
}

/// Returns the year, month and day of a number of days since 1970.
fn civil(days: i64) -> (i64, u8, u8) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let small = |number: i64| u8::try_from(number).unwrap_or_default();
    (year, small(month), small(day))
}

/// Returns the weekday, from 0 for Monday.
fn weekday(days: i64) -> i64 {
    (days + 3).rem_euclid(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(year: i64, month: u8, day: u8) -> i64 {
        start_of(year, month, day).unwrap()
    }

    #[test]
    fn days_and_dates_round_trip() {
        for days in (-800_000..800_000).step_by(37) {
            let (year, month, of_month) = civil(days);
            assert_eq!(start_of(year, month, of_month), Some(days * DAY));
        }
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(weekday(0), 3);
        assert_eq!(start_of(2023, 2, 29), None);
        assert_eq!(start_of(2023, 13, 1), None);
        assert!(start_of(2024, 2, 29).is_some());
    }

    #[test]
    fn dates_are_parsed_in_common_forms() {
        let now = day(2024, 3, 14) + DAY / 2;
        let one = |year, month, of_month| {
            let start = day(year, month, of_month);
            When::Between(start, start + DAY)
        };
        let month = |year, month| month_of(year, month).unwrap();
        let table: &[(&str, &[When])] = &[
            ("what happened on 8 May 2023?", &[one(2023, 5, 8)]),
            ("on May 8th, 2023", &[one(2023, 5, 8)]),
            ("the 8th of may 2023", &[one(2023, 5, 8)]),
            ("since 2023-05-08", &[one(2023, 5, 8)]),
            ("in 2023-05", &[month(2023, 5)]),
            ("in May 2023", &[month(2023, 5)]),
            ("in may", &[When::Yearly(5, None)]),
            ("on the 3rd of June", &[When::Yearly(6, Some(3))]),
            ("may I march with you", &[]),
            ("what did April say to Jan", &[]),
            (
                "in 2022",
                &[When::Between(day(2022, 1, 1), day(2023, 1, 1))],
            ),
            ("what did I do yesterday", &[one(2024, 3, 13)]),
            ("last Monday", &[one(2024, 3, 11)]),
            ("last Thursday", &[one(2024, 3, 7)]),
            ("next Friday", &[one(2024, 3, 15)]),
            (
                "last week",
                &[When::Between(day(2024, 3, 4), day(2024, 3, 11))],
            ),
            ("last month", &[month(2024, 2)]),
            ("2 days ago", &[one(2024, 3, 12)]),
            ("31 February 2023", &[month(2023, 2)]),
            ("call 555 1234 in room 3000", &[]),
        ];
        for (text, expected) in table {
            assert_eq!(dates(text, now), *expected, "{text}");
        }
    }

    #[test]
    fn time_shortly_after_counts_half() {
        let date = When::Between(day(2023, 5, 8), day(2023, 5, 9));
        for (time, share) in [
            (day(2023, 5, 7), 0.0),
            (day(2023, 5, 8), 1.0),
            (day(2023, 5, 9), 0.5),
            (day(2023, 5, 16), 0.0),
        ] {
            assert!((date.share(time) - share).abs() < f32::EPSILON);
            let yearly = When::Yearly(5, Some(8));
            assert!((yearly.share(time - 365 * DAY) - share).abs() < f32::EPSILON);
        }
    }

    #[test]
    fn memories_have_only_absolute_dates() {
        let may = day_of(2023, 5, 8).unwrap();
        let text = "signed on 2023-05-08, paid last week, since 2021; again on 3 June";
        assert_eq!(written_in(text), [may, When::Yearly(6, Some(3))]);
        assert!(month_of(2023, 5).unwrap().is_among(&written_in(text)));
        assert!(!month_of(2023, 4).unwrap().is_among(&written_in(text)));
        assert!(written_in("yesterday in May").is_empty());
    }

    #[test]
    fn extreme_texts_and_times_do_not_panic() {
        for now in [i64::MIN, i64::MAX, 0] {
            for text in [
                "last week",
                "99999 years ago",
                "next month",
                "2099-12-31",
                "last Sunday",
            ] {
                for when in dates(text, now) {
                    for time in [i64::MIN, i64::MAX, 0] {
                        assert!((0.0..=1.0).contains(&when.share(time)));
                    }
                }
            }
        }
        let many = "8 May 2023 ".repeat(1000) + &"1 June 2001, 2 June 2001, ".repeat(50);
        assert!(dates(&many, 0).len() <= DATES);
    }
}
