//! Numbers that are secrets: card numbers, bank accounts, and bot tokens that begin with digits.

use std::ops::Range;

/// The most digits of a card number.
const CARD_MAX: usize = 19;
const CARD_MIN: usize = 13;

/// The card number that begins here. Its digits may be grouped, with one kind of separator.
pub(crate) fn card(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    if before(bytes, at).is_some_and(joins_number) {
        return None;
    }
    let mut digits = [0_u8; CARD_MAX];
    let (mut count, mut group, mut end) = (0, 0, at);
    let mut separator = None;
    let mut found = None;
    while let Some(&byte) = bytes.get(end) {
        if byte.is_ascii_digit() {
            *digits.get_mut(count)? = byte - b'0';
            (count, group, end) = (count + 1, group + 1, end + 1);
            let ends = !bytes.get(end).is_some_and(|next| joins_number(*next));
            if ends && is_card(&digits[..count]) {
                found = Some(at..end);
            }
        } else if matches!(byte, b' ' | b'-')
            && group >= 3
            && *separator.get_or_insert(byte) == byte
            && bytes.get(end + 1).is_some_and(u8::is_ascii_digit)
        {
            (group, end) = (0, end + 1);
        } else {
            break;
        }
        if count == CARD_MAX {
            break;
        }
    }
    // A longer run of digits is another kind of number.
    let more = bytes.get(end).is_some_and(u8::is_ascii_digit);
    found.filter(|_| !more)
}

/// Tests if the digits are a card number: a known issuer, a length that it uses, and a valid check
/// digit.
pub(crate) fn is_card(digits: &[u8]) -> bool {
    let number = |length: usize| {
        let digits = digits.iter().take(length);
        digits.fold(0, |number, digit| number * 10 + u32::from(*digit))
    };
    let count = digits.len();
    let issued = match (number(1), number(2), number(4)) {
        (4, _, _) => matches!(count, 13 | 16 | 19),
        (_, 34 | 37, _) => count == 15,
        (_, 51..=55, _) | (_, _, 2221..=2720) => count == 16,
        (_, 36 | 38 | 39, _) | (_, _, 3000..=3059) => (14..=19).contains(&count),
        (_, 62 | 64 | 65, _) | (_, _, 3528..=3589 | 6011) => (16..=19).contains(&count),
        (_, 50 | 56..=61 | 63 | 66..=69, _) => (CARD_MIN..=CARD_MAX).contains(&count),
        _ => false,
    };
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(n, digit)| match (n % 2, u32::from(*digit)) {
            (0, digit) => digit,
            (_, digit) => digit * 2 / 10 + digit * 2 % 10,
        })
        .sum();
    issued && sum.is_multiple_of(10)
}

/// The lengths of bank account numbers (IBANs), by country.
const IBANS: &str = "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 CZ24 \
    DE22 DK18 DO28 EE20 EG29 ES24 FI18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 \
    IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 MC27 MD24 ME22 MK19 MR27 \
    MT31 MU30 NL18 NO15 PK24 PL28 PS29 PT25 QA29 RO24 RS22 SA24 SC31 SE24 SI19 SK24 SM27 ST25 \
    SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20";

/// The bank account number (IBAN) that begins here, in one piece or in groups of four.
pub(crate) fn iban(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let country = bytes.get(at..at + 2)?;
    let is_start = country.iter().all(u8::is_ascii_uppercase)
        && bytes.get(at + 2..at + 4)?.iter().all(u8::is_ascii_digit);
    if !is_start || before(bytes, at).is_some_and(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let entry = IBANS
        .split(' ')
        .find(|entry| entry.as_bytes().get(..2) == Some(country))?;
    let length: usize = entry.get(2..)?.parse().ok()?;
    let mut account = Vec::with_capacity(length);
    let mut end = at;
    while account.len() < length {
        let byte = *bytes.get(end)?;
        if byte.is_ascii_digit() || byte.is_ascii_uppercase() {
            account.push(byte);
        } else if byte != b' ' || account.len() % 4 != 0 || bytes.get(end - 1) == Some(&b' ') {
            return None;
        }
        end += 1;
    }
    if bytes.get(end).is_some_and(u8::is_ascii_alphanumeric) {
        return None;
    }
    account.rotate_left(4);
    let rest = account.iter().fold(0_u32, |rest, byte| match byte {
        b'0'..=b'9' => (rest * 10 + u32::from(byte - b'0')) % 97,
        letter => (rest * 100 + u32::from(letter - b'A') + 10) % 97,
    });
    (rest == 1).then_some(at..end)
}

/// The token of a Telegram bot: its number, a colon, and about 35 characters.
pub(crate) fn telegram(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    if before(bytes, at).is_some_and(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = run(&bytes[at..], 11, u8::is_ascii_digit);
    if !(8..=10).contains(&digits) || bytes.get(at + digits) != Some(&b':') {
        return None;
    }
    let start = at + digits + 1;
    let length = run(&bytes[start..], 64, |byte| is_token(*byte));
    (length >= 34).then_some(at..start + length)
}

pub(crate) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

/// The length of the run of matching bytes, up to `most`.
pub(crate) fn run(bytes: &[u8], most: usize, is: impl Fn(&u8) -> bool) -> usize {
    let length = bytes.iter().take(most).take_while(|byte| is(byte)).count();
    #[cfg(test)]
    WORK.set(WORK.get() + length);
    length
}

#[cfg(test)]
std::thread_local! {
    static WORK: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The total length of all runs found so far on this thread.
#[cfg(test)]
pub(crate) fn work() -> usize {
    WORK.get()
}

pub(crate) fn before(bytes: &[u8], at: usize) -> Option<u8> {
    at.checked_sub(1).map(|before| bytes[before])
}

/// Tests if a byte makes adjacent digits a part of a longer name or number.
fn joins_number(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.')
}
