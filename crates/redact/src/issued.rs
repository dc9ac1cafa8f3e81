//! Tokens as their issuers spell them.
//!
//! Most issuers start their tokens with a prefix so that they can be recognised. A prefix that is also a word
//! or an abbreviation counts only if the rest has the right length and characters.

use std::{ops::Range, sync::OnceLock};

use crate::{
    numbers::{before, is_token, run},
    patterns::JUDGED,
};

/// A prefix, and the form of the rest that follows it.
struct Family {
    begins: &'static str,
    rest: Rest,
    /// Characters of the rest besides letters and digits.
    also: &'static [u8],
    least: usize,
    most: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// Letters and digits.
    Any,
    /// Upper-case letters, lower-case letters and digits, at least one of each.
    Mixed,
    /// Lower-case letters and digits.
    Small,
    /// Digits and the letters a to f.
    Hex,
    /// The path of a URL, which is a key as a whole. The prefix stays visible.
    Path,
}

const fn family(begins: &'static str, also: &'static [u8], least: usize) -> Family {
    Family {
        begins,
        rest: Rest::Any,
        also,
        least,
        most: usize::MAX,
    }
}

const fn exact(
    begins: &'static str,
    rest: Rest,
    also: &'static [u8],
    least: usize,
    most: usize,
) -> Family {
    Family {
        begins,
        rest,
        also,
        least,
        most,
    }
}

const fn path(begins: &'static str) -> Family {
    Family {
        begins,
        rest: Rest::Path,
        also: b"/-_",
        least: 12,
        most: usize::MAX,
    }
}

static FAMILIES: &[Family] = &[
    family("swb_", b"_", 32),
    family("sk-", b"-_", 12),
    family("sk_live_", b"", 8),
    family("sk_test_", b"", 8),
    family("rk_live_", b"", 8),
    family("rk_test_", b"", 8),
    family("pk_live_", b"", 8),
    family("pk_test_", b"", 8),
    family("ghp_", b"", 16),
    family("gho_", b"", 16),
    family("ghu_", b"", 16),
    family("ghs_", b"", 16),
    family("ghr_", b"", 16),
    family("github_pat_", b"_", 16),
    family("glpat-", b"-_.", 16),
    family("gldt-", b"-_", 16),
    family("glrt-", b"-_", 16),
    family("glc_", b"+/=", 24),
    family("xoxa-", b"-", 8),
    family("xoxb-", b"-", 8),
    family("xoxc-", b"-", 8),
    family("xoxd-", b"-%+/=", 8),
    family("xoxe-", b"-", 8),
    family("xoxe.", b"-.", 8),
    family("xoxp-", b"-", 8),
    family("xoxr-", b"-", 8),
    family("xoxs-", b"-", 8),
    family("xapp-", b"-", 8),
    family("AKIA", b"", 12),
    family("ASIA", b"", 12),
    family("AIza", b"-_", 30),
    family("GOCSPX-", b"-_", 16),
    family("ya29.", b"-_.", 16),
    family("1//0", b"-_", 20),
    family("npm_", b"", 30),
    family("pypi-", b"-_", 16),
    family("hf_", b"", 30),
    family("gsk_", b"", 30),
    family("xai-", b"", 30),
    family("r8_", b"", 30),
    family("dop_v1_", b"", 16),
    family("doo_v1_", b"", 16),
    family("dor_v1_", b"", 16),
    family("dckr_pat_", b"-_", 16),
    family("shpat_", b"", 24),
    family("shpss_", b"", 24),
    family("SG.", b"-_.", 32),
    family("lin_api_", b"", 24),
    family("ntn_", b"", 30),
    family("figd_", b"-_", 24),
    family("hvs.", b"-_", 20),
    family("sbp_", b"", 24),
    family("tskey-", b"-", 16),
    family("whsec_", b"+/=", 16),
    family("AGE-SECRET-KEY-1", b"", 24),
    family("sq0csp-", b"-_", 24),
    family("eyJ", b"-_.", 8),
    family("tvly-", b"-_", 16),
    family("e2b_", b"", 24),
    family("bb_live_", b"-_", 16),
    family("apify_api_", b"", 24),
    family("pcsk_", b"_", 30),
    family("jina_", b"-_", 32),
    family("lsv2_pt_", b"_", 24),
    family("lsv2_sk_", b"_", 24),
    family("pplx-", b"", 30),
    family("ATATT", b"-_=", 32),
    family("ATBB", b"", 24),
    family("glsa_", b"_", 24),
    family("sntrys_", b"+/=_-", 24),
    family("sntryu_", b"", 24),
    family("PMAK-", b"-", 24),
    family("NRAK-", b"", 20),
    family("dp.pt.", b"", 30),
    family("dp.st.", b"._-", 30),
    family("pscale_tkn_", b"._-", 24),
    family("pscale_pw_", b"._-", 24),
    family("rubygems_", b"", 32),
    family("CLOJARS_", b"", 32),
    family("HRKU-", b"-_", 24),
    family("fm2_", b"+/=_-", 32),
    family("vercel_blob_rw_", b"_", 20),
    family("nfp_", b"", 30),
    family("glptt-", b"-_", 16),
    family("glcbt-", b"-_", 16),
    family("glft-", b"-_", 16),
    family("glagent-", b"-_", 16),
    family("hvb.", b"-_", 20),
    family("AKCp", b"", 40),
    family("EAAA", b"-_", 48),
    family("EAACEd", b"", 20),
    family("ops_ey", b"-_.=", 40),
    family("sb_secret_", b"-_", 20),
    family("nvapi-", b"-_", 40),
    family("xkeysib-", b"-", 40),
    family("CCIPAT_", b"-_", 30),
    family("bkua_", b"", 30),
    family("CFPAT-", b"-_", 30),
    family("FLWSECK-", b"-", 20),
    family("FLWSECK_TEST-", b"-", 12),
    family("SSWS 00", b"-_", 20),
    family("sl.B", b"-_", 60),
    family("phx_", b"", 30),
    family("dbtc_", b"-_", 30),
    family("dbtu_", b"-_", 30),
    family("wandb_v1_", b"_", 40),
    family("secret-live-", b"", 20),
    family("cmVmdGtu", b"", 40),
    exact("squ_", Rest::Hex, b"", 40, 40),
    exact("sqp_", Rest::Hex, b"", 40, 40),
    exact("sqa_", Rest::Hex, b"", 40, 40),
    exact("sgp_", Rest::Hex, b"_", 40, 57),
    exact("v1.0-", Rest::Hex, b"-", 150, 200),
    exact("napi_", Rest::Small, b"", 50, 80),
    exact("csk-", Rest::Small, b"", 48, 48),
    exact("oy2", Rest::Small, b"", 43, 43),
    exact("LTAI", Rest::Mixed, b"", 12, 24),
    exact("AKID", Rest::Mixed, b"", 32, 32),
    exact("rnd_", Rest::Mixed, b"", 24, 40),
    exact("fw_", Rest::Mixed, b"", 20, 32),
    exact("vcp_", Rest::Mixed, b"", 24, 64),
    exact("vck_", Rest::Mixed, b"", 24, 64),
    exact("tfp_", Rest::Mixed, b"-_.", 40, 64),
    exact("pnu_", Rest::Any, b"", 36, 36),
    exact("EZAK", Rest::Any, b"", 54, 54),
    exact("sdk-", Rest::Hex, b"-", 36, 36),
    exact("fc-", Rest::Hex, b"", 32, 32),
    exact("BSA", Rest::Mixed, b"-_", 24, 32),
    exact("re_", Rest::Mixed, b"_", 24, 40),
    exact("secret_", Rest::Mixed, b"", 40, 50),
    exact("dapi", Rest::Hex, b"", 32, 32),
    exact("pul-", Rest::Hex, b"", 40, 40),
    exact("cio", Rest::Mixed, b"", 32, 32),
    exact("key-", Rest::Small, b"", 32, 32),
    exact("SK", Rest::Hex, b"", 32, 32),
    exact("AC", Rest::Hex, b"", 32, 32),
    path("hooks.slack.com/services/"),
    path("hooks.slack.com/workflows/"),
    path("hooks.slack.com/triggers/"),
    path("discord.com/api/webhooks/"),
    path("discordapp.com/api/webhooks/"),
    path("hooks.zapier.com/hooks/"),
    path("mcp.zapier.com/api/mcp/s/"),
];

fn by_first_byte() -> &'static [Vec<&'static Family>; 256] {
    static TABLE: OnceLock<[Vec<&Family>; 256]> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = [const { Vec::new() }; 256];
        for family in FAMILIES {
            table[usize::from(family.begins.as_bytes()[0])].push(family);
        }
        table
    })
}

/// Tests if the prefix of an issuer begins with this byte.
pub(crate) fn may_begin_with(byte: u8) -> bool {
    !by_first_byte()[usize::from(byte)].is_empty()
}

/// The token whose prefix begins here.
pub(crate) fn token(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let rest = &bytes[at..];
    let families = by_first_byte()[usize::from(rest[0])].iter();
    families
        .filter(|family| rest.starts_with(family.begins.as_bytes()))
        .find_map(|family| family.token(bytes, at))
}

impl Family {
    fn token(&self, bytes: &[u8], at: usize) -> Option<Range<usize>> {
        let start = at + self.begins.len();
        let length = run(&bytes[start..], JUDGED, |byte| self.has(*byte));
        let token = &bytes[start..start + length];
        let some = |is: fn(&u8) -> bool| token.iter().any(is);
        let is_made = match self.rest {
            // Base64 of `{"`, which need not contain a digit.
            Rest::Any if self.begins == "eyJ" => true,
            Rest::Mixed => {
                some(u8::is_ascii_digit)
                    && some(u8::is_ascii_uppercase)
                    && some(u8::is_ascii_lowercase)
            }
            // Prose contains dots and dashes too; issued tokens contain digits.
            _ => some(u8::is_ascii_digit),
        };
        if !(self.least..=self.most).contains(&length) || !is_made {
            return None;
        }
        let end = start + length;
        if self.most < JUDGED {
            let goes_on = bytes.get(end).is_some_and(|byte| is_token(*byte));
            return (!goes_on).then_some(at..end);
        }
        let from = if self.rest == Rest::Path { start } else { at };
        Some(from..end + run(&bytes[end..], usize::MAX, |byte| self.has(*byte)))
    }

    fn has(&self, byte: u8) -> bool {
        let is_part = match self.rest {
            Rest::Any | Rest::Mixed | Rest::Path => byte.is_ascii_alphanumeric(),
            Rest::Small => byte.is_ascii_lowercase() || byte.is_ascii_digit(),
            Rest::Hex => is_hex(byte),
        };
        is_part || self.also.contains(&byte)
    }
}

/// Bytes in the middle of tokens that have no prefix.
pub(crate) const ANCHORS: [u8; 4] = *b".-~:";

/// The token around this position: Terraform (`.atlasv1.`), Airtable (`pat….…`), Mailchimp (`…-us12`), Azure
/// (`8Q~`), Firebase (`:APA91`).
pub(crate) fn around(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let rest = &bytes[at..];
    let back = |most: usize, is: fn(u8) -> bool| {
        let before = bytes[..at].iter().rev().take(most);
        before.take_while(|byte| is(**byte)).count()
    };
    let ahead = |skip: usize, is: fn(u8) -> bool| {
        let rest = rest.get(skip..).unwrap_or_default();
        skip + run(rest, JUDGED, |byte| is(*byte))
    };
    let starts_word =
        |length: usize| before(bytes, at - length).is_none_or(|byte| !byte.is_ascii_alphanumeric());
    let (front, length, is_token) = match rest {
        [b'.', b'a', b't', b'l', b'a', b's', b'v', b'1', b'.', ..] => {
            let (front, length) = (back(20, is_alphanumeric), ahead(9, is_token));
            (front, length, front >= 10 && length >= 9 + 40)
        }
        [b'.', ..] => {
            let is_front = bytes[..at].len() >= 17 && bytes[at - 17..].starts_with(b"pat");
            let front = if is_front {
                back(17, is_alphanumeric)
            } else {
                0
            };
            let length = if front == 17 { ahead(1, is_hex) } else { 0 };
            (front, length, length == 1 + 64 && starts_word(front))
        }
        [b'-', b'u', b's', b'0'..=b'9', ..] => {
            let (front, length) = (back(33, is_hex), ahead(3, |byte| byte.is_ascii_digit()));
            (front, length, front == 32 && starts_word(32) && length <= 5)
        }
        [b'~', ..] => {
            let is_part = |byte| is_token(byte) || matches!(byte, b'~' | b'.');
            let is_front = at >= 5 && bytes[at - 1] == b'Q' && bytes[at - 2].is_ascii_digit();
            let length = if is_front { ahead(1, is_part) } else { 0 };
            (5, length, (1 + 31..=1 + 40).contains(&length))
        }
        [b':', b'A', b'P', b'A', b'9', b'1', ..] => {
            let (front, length) = (back(32, is_token), ahead(6, is_token));
            (front, length, front >= 7 && length >= 64)
        }
        _ => return None,
    };
    is_token.then(|| at - front..at + length)
}

fn is_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}
