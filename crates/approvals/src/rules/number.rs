//! Numbers as lenient servers parse them, including `"1,000"`, `"$100"` and `"0x64"`.

use super::decode::{folded, is_unseen};

/// The bound at which programs with 64-bit numbers overflow or lose digits.
const SURE_BELOW: f64 = 9_223_372_036_854_775_808.0;

/// The most digits that a double keeps.
const KEPT_DIGITS: usize = 15;

/// Names of currencies, which do not change a number; the empty one stands for no currency.
const CURRENCIES: [&str; 34] = [
    "", "$", "€", "£", "¥", "₹", "us$", "usd", "eur", "gbp", "jpy", "cny", "inr", "chf", "cad",
    "aud", "nzd", "sek", "nok", "dkk", "pln", "czk", "huf", "brl", "mxn", "zar", "krw", "sgd",
    "hkd", "dollar", "dollars", "euro", "euros", "pounds",
];

/// The possible values of a text as a number.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Numbers {
    /// Every possible value.
    pub(crate) values: Vec<f64>,
    /// `true` if there are no other possible values.
    pub(crate) is_sure: bool,
    /// `true` if it has digits that are not parsed here.
    pub(crate) has_other_digits: bool,
}

impl Numbers {
    /// Parses a number of JSON.
    pub(crate) fn of_number(spelled: &str) -> Self {
        let mut found = Self {
            is_sure: true,
            ..Self::default()
        };
        found.add(spelled.parse().ok());
        found
    }

    pub(crate) fn of_text(text: &str) -> Self {
        let folded = folded(text);
        let text: String = folded
            .chars()
            .filter(|c| !is_unseen(*c) && !c.is_whitespace())
            .filter(|c| !matches!(c, '_' | '\'' | '\u{2019}' | '"'))
            .collect();
        let mut found = Self {
            is_sure: true,
            values: Vec::new(),
            has_other_digits: text.chars().any(|c| c.is_numeric() && !c.is_ascii()),
        };
        found.is_sure = !found.has_other_digits;
        let digit = |c: char| c.is_ascii_digit();
        let (Some(first), Some(last)) = (text.find(digit), text.rfind(digit)) else {
            found.is_sure = false;
            return found;
        };
        if let Some((radix, digits)) = based(&text[first..]) {
            // Some parsers stop at the unit.
            let end = digits.find(|c: char| !c.is_digit(radix));
            let value = u64::from_str_radix(&digits[..end.unwrap_or(digits.len())], radix).ok();
            #[expect(clippy::cast_precision_loss, reason = "as any reader of a float does")]
            found.add(value.map(|value| value as f64));
            found.is_sure &= end.is_none();
            return found;
        }
        let (head, core, tail) = (&text[..first], &text[first..=last], &text[last + 1..]);
        // `5k` is 5000 to some parsers, `5%` is a twentieth, and `1 lakh` is a number in words.
        let signs = ['+', '-', '(', ')', '.'];
        found.is_sure &= [head, tail]
            .iter()
            .all(|side| CURRENCIES.contains(&side.trim_matches(signs)));
        // `(100)` is negative to some parsers, and `--100` is not.
        let signs: &[&str] = match (head.matches('-').count(), head.contains('(')) {
            (0, false) => &[""],
            (1, false) => &["-"],
            _ => &["", "-"],
        };
        let point = if head.ends_with('.') { "0." } else { "" };
        let mut add = |core: &str| {
            for sign in signs {
                found.add(format!("{sign}{point}{core}").parse().ok());
            }
        };
        let is_number = core.replace(',', "").parse::<f64>().is_ok();
        let digits = core.find(|c: char| !c.is_ascii_digit());
        if let Some(end) = digits.filter(|_| !is_number) {
            add(&core[..end]);
        }
        add(&core.replace(',', ""));
        // Some parsers stop at the exponent, at the decimal point, or at a space.
        if let Some((mantissa, _)) = core.split_once('e') {
            add(&mantissa.replace(',', ""));
        }
        if let Some((whole, _)) = core.split_once(['e', '.']) {
            add(&whole.replace(',', ""));
        }
        if let Some(digits) = digits_before_blank(&folded) {
            add(digits);
        }
        if core.contains(',') {
            add(&core.replace('.', "").replace(',', "."));
        }
        if has_thousands(core) {
            add(&core.replace('.', ""));
        }
        if core.starts_with('0') && core.len() > 1 && core.bytes().all(|c| c.is_ascii_digit()) {
            let octal = u64::from_str_radix(core, 8).unwrap_or_default();
            add(&octal.to_string());
        }
        found
    }

    /// Tests if this number is a possible value.
    pub(crate) fn may_be(&self, number: f64) -> bool {
        // Parsers that use doubles do not distinguish equal doubles.
        self.has_other_digits
            || self
                .values
                .iter()
                .any(|value| value.total_cmp(&number).is_eq())
    }

    fn add(&mut self, value: Option<f64>) {
        match value {
            Some(value) => {
                self.is_sure &= value.is_finite() && value.abs() < SURE_BELOW;
                // Negative zero equals zero.
                self.values.push(if value == 0.0 { 0.0 } else { value });
            }
            None => self.is_sure = false,
        }
    }
}

/// The digits before a space, if others follow.
fn digits_before_blank(text: &str) -> Option<&str> {
    let text = &text[text.find(|c: char| c.is_ascii_digit())?..];
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let rest = &text[end..];
    let follows = rest.trim_start();
    let is_split = follows.len() < rest.len() && follows.starts_with(|c: char| c.is_ascii_digit());
    is_split.then_some(&text[..end])
}

/// Tests if a number has more digits than a double keeps.
pub(crate) fn is_rounded(spelled: &str) -> bool {
    spelled.bytes().filter(u8::is_ascii_digit).count() > KEPT_DIGITS
}

/// The radix and digits of a number with the prefix of another base.
fn based(text: &str) -> Option<(u32, &str)> {
    [("0x", 16), ("0o", 8), ("0b", 2)]
        .iter()
        .find_map(|(sign, radix)| Some((*radix, text.strip_prefix(sign)?)))
}

/// Tests if points may separate thousands, as in `1.000`.
fn has_thousands(text: &str) -> bool {
    let whole = text.split(',').next().unwrap_or_default();
    let mut groups = whole.split('.');
    let first = groups.next().unwrap_or_default();
    let is_group = |group: &str| group.len() == 3 && group.bytes().all(|c| c.is_ascii_digit());
    let mut rest = groups.peekable();
    rest.peek().is_some() && (1..=3).contains(&first.len()) && rest.all(is_group)
}
