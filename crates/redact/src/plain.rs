//! Detects values that are too random to be words, and values that are too plain to be secrets.

/// The least length of a part that can be random, in bytes.
const RANDOM_LEAST: usize = 16;
/// The longest word, in characters.
const WORD_MAX: usize = 20;
/// The longest part of a path or host that mixes letters and digits and still counts as a name, in
/// bytes.
const NAME_MAX: usize = 12;

/// Tests if the value after `name=` is too random to be words. A checksum, according to its name,
/// does not count.
pub(crate) fn is_random(name: &str, value: &str) -> bool {
    const SUMS: [&str; 7] = ["sha", "md5", "hash", "digest", "checksum", "commit", "etag"];
    if SUMS.iter().any(|sum| name.contains(sum)) {
        return false;
    }
    let mut counts = [0_u32; 256];
    value
        .bytes()
        .for_each(|byte| counts[usize::from(byte)] += 1);
    let length = f64::from(u32::try_from(value.len()).unwrap_or(u32::MAX));
    let shares = counts.iter().filter(|count| **count > 0);
    let bits: f64 = shares
        .map(|count| f64::from(*count) / length)
        .map(|share| -share * share.log2())
        .sum();
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let hex = value.bytes().all(|byte| byte.is_ascii_hexdigit());
    digits > 0 && bits > if hex { 2.8 } else { 3.7 }
}

/// Tests if a part of a URL or a path looks machine-generated.
pub(crate) fn is_token_like(part: &str) -> bool {
    let is_made = part.len() >= RANDOM_LEAST
        && part
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.~+/=%".contains(&byte));
    // A name of several words has no digits, or only a few next to its words.
    is_made && !is_compound(part) && (is_uuid(part) || is_random("", part) || is_mixed(part))
}

/// Tests if a part has upper-case letters, lower-case letters and digits.
fn is_mixed(part: &str) -> bool {
    let has = |is: fn(&u8) -> bool| part.bytes().any(|byte| is(&byte));
    has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_digit)
}

/// Tests if a part consists of words with separators, such as `server-filesystem-v2`.
fn is_compound(part: &str) -> bool {
    part.contains(['-', '_', '.']) && part.split(['-', '_', '.']).all(is_word)
}

/// Tests if a value is a UUID, which identifies something but grants no access.
pub(crate) fn is_uuid(value: &str) -> bool {
    let mut parts = value.split('-');
    let lengths = [8, 4, 4, 4, 12];
    lengths.iter().all(|length| {
        parts.next().is_some_and(|part| {
            part.len() == *length && part.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    }) && parts.next().is_none()
}

/// Tests if the value of a variable is safe to show in a log: a word, a number, a path, a host, or a
/// URL without a token. Replacing those would make logs unreadable.
pub(crate) fn is_plain(value: &str) -> bool {
    let value = value.trim();
    if value.len() > 512 || value.contains(['@', '?', '&', '=']) {
        return false;
    }
    let parts = || {
        value
            .split(|c: char| !c.is_alphanumeric())
            .filter(|part| !part.is_empty())
    };
    if is_place(value) {
        return parts().all(|part| is_word(part) || part.len() <= NAME_MAX)
            && !value.split('/').any(is_token_like);
    }
    // A sentence may be a passphrase.
    !value.contains(char::is_whitespace) && parts().all(is_word)
}

/// Tests if a value has the shape of a path, a URL or a host.
fn is_place(value: &str) -> bool {
    let is_path = value.starts_with(['/', '~']) || value.starts_with("./");
    let is_drive = value.get(1..3).is_some_and(|rest| rest == ":\\");
    let is_address = value.contains("://") && !value.contains(['?', '#']);
    let host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':');
    let has_dot = value.split(':').next().is_some_and(|name| {
        name.split('.').count() > 1 && name.split('.').all(|label| !label.is_empty())
    });
    is_path || is_drive || is_address || (has_dot && value.chars().all(host))
}

/// Tests if a part is a word: letters of one case, a number of few digits, or a short mix of both.
fn is_word(part: &str) -> bool {
    let letters = part.chars().all(char::is_alphabetic);
    let digits = part.bytes().all(|byte| byte.is_ascii_digit());
    let tail = part.get(part.chars().next().map_or(0, char::len_utf8)..);
    let tail = tail.unwrap_or_default();
    let one_case = !tail.chars().any(char::is_uppercase) || !part.chars().any(char::is_lowercase);
    if letters {
        return one_case && part.chars().count() <= WORD_MAX;
    }
    if digits {
        return part.len() < 9;
    }
    part.len() <= 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_values_stay_readable() {
        for value in [
            "true",
            "production",
            "localhost",
            "INFO",
            "en_US.UTF-8",
            "Europe/Berlin",
            "8080",
            "/usr/local/bin",
            "~/projects/app2",
            "/var/lib/my-app/data",
            "api.example.com",
            "127.0.0.1:8080",
            "https://api.example.com/v1",
            "C:\\Users\\Ann",
            "x86_64",
            "2024-01-02",
            "node-v22",
            "1.2.3",
        ] {
            assert!(is_plain(value), "{value}");
        }
        for value in [
            "hunter2",
            "hunter2-x",
            "Tr0ub4dor&3",
            "correct horse battery staple",
            "ghp_0123456789abcdefghij",
            "https://ann:pw@example.com",
            "https://example.com/?key=abc",
            "https://hooks.example.com/s/9f86d081884c7d659a2feaa0c55ad015",
            "/run/9f86d081884c7d659a2feaa0c55ad015",
            "123456789012",
            "aB3dE5fG7hJ9",
        ] {
            assert!(!is_plain(value), "{value}");
        }
    }

    #[test]
    fn generated_path_parts_are_distinguished_from_names() {
        for part in [
            "9f86d081884c7d659a2feaa0c55ad015",
            "T0K3Nabcdefghij0123456789",
            "550e8400-e29b-41d4-a716-446655440000",
        ] {
            assert!(is_token_like(part), "{part}");
        }
        for part in [
            "mcp",
            "server-filesystem",
            "modelcontextprotocol",
            "v1",
            "my-long-name-of-a-thing",
        ] {
            assert!(!is_token_like(part), "{part}");
        }
    }
}
