//! Addresses: their schemes, hosts and ports in one notation.

use std::net::{Ipv4Addr, Ipv6Addr};

use idna::punycode;
use url::Url;

use super::decode::folded;
use super::expand::without_ranges;
use super::reading::Reading;

/// Schemes whose slashes are optional to lenient readers.
const WEB: [&str; 4] = ["http", "https", "ws", "wss"];

/// Schemes that open files.
const FILE: [&str; 4] = ["file", "local_file", "local-file", "netdoc"];

/// The most schemes in front of one another, as in `view-source:jar:file:///x`.
const WRAPPED: usize = 4;

/// The usual names of this machine.
const THIS_MACHINE: [&str; 4] = ["localhost", "127.0.0.1", "0.0.0.0", "[::1]"];

/// Parameters in the query of a database's address that lead elsewhere, beside those that name a host.
const PLACES: [&str; 12] = [
    "port",
    "dbname",
    "database",
    "db",
    "path",
    "addr",
    "address",
    "server",
    "service",
    "servicefile",
    "socket",
    "unix_socket",
];

/// The longest label of a host. Decoding takes the square of it.
const LABEL_BYTES: usize = 63;

/// A text as an address, or as a path.
pub(crate) enum Place<'t> {
    /// A path.
    Path(&'t str),
    /// A path on a host, which is nearly always empty.
    File {
        /// The host.
        host: &'t str,
        /// The path there.
        path: &'t str,
    },
    /// An address.
    Address {
        /// Its scheme and host in every notation that they may mean.
        prefixes: Vec<String>,
        /// The path after them.
        path: &'t str,
        /// Readers differ in its host or its port.
        is_unclear: bool,
    },
}

impl<'t> Place<'t> {
    /// Reads a text in lower case with slashes for backslashes.
    pub(crate) fn of(text: &'t str, reading: Reading) -> Self {
        let Some((scheme, rest)) = scheme(text) else {
            return Self::Path(text);
        };
        if FILE.contains(&scheme) {
            // Before the path there may be a host.
            let (host, path) = match rest.strip_prefix("//") {
                Some(after) => after.split_at(after.find('/').unwrap_or(after.len())),
                None => ("", rest),
            };
            // `/c:/x` is `c:/x`.
            let drive = path.trim_start_matches('/');
            let is_drive = drive.as_bytes().get(1) == Some(&b':');
            let path = if is_drive { drive } else { path };
            return Self::File { host, path };
        }
        let is_web = WEB.contains(&scheme);
        let Some(after) = rest.strip_prefix("//").or_else(|| is_web.then_some(rest)) else {
            return Self::Path(text);
        };
        let after = if is_web {
            after.trim_start_matches('/')
        } else {
            after
        };
        let at = after.find(['/', '?', '#']).unwrap_or(after.len());
        let (whole, path) = after.split_at(at);
        let authority = whole.rsplit('@').next().unwrap_or_default();
        let mut prefixes = prefixes(scheme, authority, reading);
        // `url.parse` of Node.js ends the host there.
        let cut = authority.find([';', '^', '|', '%', '\'', '"', '<', '>', '{', '}', '`', ' ']);
        if let Some(at) = cut.filter(|_| reading == Reading::Generous) {
            prefixes.extend(self::prefixes(scheme, &authority[..at], reading));
        }
        let is_unclear = !is_plain(whole, reading) || (!is_web && may_lead_to_another(whole, path));
        Self::Address {
            prefixes,
            path,
            is_unclear,
        }
    }
}

/// Tests if every reader finds the same host in an authority. Other characters than the usual ones end it to some.
fn is_plain(authority: &str, reading: Reading) -> bool {
    let is_generous = reading == Reading::Generous;
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let is_of_user = |c: char| c.is_alphanumeric() || "-._~%!$&()*+=:;@".contains(c);
    // Braces and ranges are expanded elsewhere, and percent signs decoded.
    let is_of_host = |c: char| is_name(c) && (is_generous || c != '%');
    let is_of_host = |c: char| is_of_host(c) || (is_generous && "{},*".contains(c));
    // `。` is a full stop to everyone.
    let is_folded = |c: char| folded(c.encode_utf8(&mut [0; 4])).chars().all(is_of_host);
    let is_of_host = |c: char| is_of_host(c) || (!c.is_ascii() && is_folded(c));
    // A port that is none is no part of the host, whatever it is.
    let is_of_port = |c: char| c.is_ascii_digit() || (is_generous && is_odd_port(c));
    // Some take the rest of a larger number.
    let is_small = |port: &str| {
        digits(port, reading).is_none_or(|port| port.is_empty() || port.parse::<u16>().is_ok())
    };
    let is_port = |rest: &str| {
        let port = rest.strip_prefix(':');
        rest.is_empty() || port.is_some_and(|port| port.chars().all(is_of_port) && is_small(port))
    };
    let numeric = host
        .strip_prefix('[')
        .and_then(|inner| inner.split_once(']'));
    let is_address = |inner: &str| {
        let address = inner.split('%').next().unwrap_or_default();
        address.parse::<Ipv6Addr>().is_ok()
    };
    let is_plain_host = match numeric {
        Some((inner, rest)) if is_address(inner) => is_port(rest),
        _ => {
            let host = if is_generous {
                &*without_ranges(host)
            } else {
                host
            };
            let (name, port) = host.split_at(host.find(':').unwrap_or(host.len()));
            name.chars().all(is_of_host) && is_port(port)
        }
    };
    user.chars().all(is_of_user) && is_plain_host
}

fn is_odd_port(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_+{}, ".contains(c)
}

/// Tests if the driver of a database may open another place than an address seems to name: drivers take lists of hosts,
/// passwords with any characters, and hosts, ports and databases in the query.
fn may_lead_to_another(authority: &str, path: &str) -> bool {
    let end = path.find('/').unwrap_or(path.len());
    let query = path.split_once('?').map_or("", |(_, query)| query);
    let mut names = query
        .split(['&', ';', '#'])
        .map(|part| part.split('=').next().unwrap_or_default());
    let is_place = |name: &str| name.contains("host") || PLACES.contains(&name);
    authority.contains(',') || path[..end].contains('@') || names.any(is_place)
}

/// The scheme of a text, and the rest behind its colon.
fn scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let is_scheme = scheme.len() > 1
        && scheme.starts_with(|c: char| c.is_ascii_lowercase())
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.' | b'_'));
    is_scheme.then_some((scheme, rest))
}

/// The address behind schemes that name another one, as in `url:file:///x`.
pub(crate) fn wrapped(text: &str) -> Option<&str> {
    let (mut outer, mut rest) = scheme(text)?;
    for _ in 0..WRAPPED {
        // Python takes it off, and the blanks behind it.
        let is_url = outer == "url";
        rest = if is_url { rest.trim_start() } else { rest };
        let Some((inner, after)) = scheme(rest) else {
            return is_url.then_some(rest);
        };
        // A web address has none behind its scheme, whatever its host looks like.
        let is_inner = !WEB.contains(&outer) && after.starts_with("//");
        if FILE.contains(&inner) || WEB.contains(&inner) || is_inner {
            return Some(rest);
        }
        (outer, rest) = (inner, after);
    }
    None
}

/// The address without the name of a user, if that has odd characters: they may end the host to one reader, or once
/// they are decoded, and not to another.
pub(crate) fn without_user(text: &str) -> Option<String> {
    let begin = text.find("://").map_or(0, |at| at + "://".len());
    let after = &text[begin..];
    let end = after.find(['/', '?', '#']).unwrap_or(after.len());
    let (user, _) = after[..end].rsplit_once('@')?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-. ,+=@()&:~".contains(&byte);
    if user.bytes().all(is_plain) {
        return None;
    }
    Some(format!("{}{}", &text[..begin], &after[user.len() + 1..]))
}

/// The address in lower case as the URL standard writes it, which browsers, Node.js and pydantic follow.
pub(crate) fn parsed(text: &str) -> Option<String> {
    // One letter is a drive.
    text.find(':').filter(|at| *at > 1)?;
    let url = Url::parse(text).ok()?;
    if url.cannot_be_a_base() || url.scheme().len() < 2 {
        return None;
    }
    let mut written = String::from(url);
    written.make_ascii_lowercase();
    Some(written)
}

/// A scheme and a host with its port, last in the usual notation, which has international labels in
/// Unicode. A generous reading has them in ASCII too.
pub(crate) fn prefixes(scheme: &str, authority: &str, reading: Reading) -> Vec<String> {
    let is_host = |host: &str| !host.contains(':') || host.ends_with(']');
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if is_host(host) => match digits(port, reading) {
            Some(digits) => (host, digits),
            // No port that readers agree on: to some it is none.
            None if reading == Reading::Generous => (host, String::new()),
            None => (authority, String::new()),
        },
        _ => (authority, String::new()),
    };
    let port = port.trim_start_matches('0');
    let port = if port == usual_port(usual_scheme(scheme)) {
        ""
    } else {
        port
    };
    let colon = if port.is_empty() { "" } else { ":" };
    let host = in_unicode(host.trim_end_matches('.'));
    let ascii = (reading == Reading::Generous && !host.is_ascii()).then(|| in_ascii(&host));
    let numeric = numeric(&host);
    let scheme = usual_scheme(scheme);
    let names = || numeric.iter().chain([&host]);
    let is_local = reading == Reading::Generous && names().any(|name| is_this_machine(name));
    let local = THIS_MACHINE.into_iter().filter(|_| is_local);
    let local: Vec<String> = local.map(str::to_owned).collect();
    let mut prefixes = Vec::new();
    for host in local.into_iter().chain(ascii).chain([host]).chain(numeric) {
        let prefix = format!("{scheme}://{host}{colon}{port}");
        if !prefixes.contains(&prefix) {
            prefixes.push(prefix);
        }
    }
    prefixes
}

/// Tests if a host in its usual notation is this machine.
fn is_this_machine(host: &str) -> bool {
    let v4 = host.parse::<Ipv4Addr>();
    let v6 = host.trim_matches(['[', ']']).parse::<Ipv6Addr>();
    let names = ["localhost4", "localhost6", "ip6-localhost", "ip6-loopback"];
    let name = host.strip_suffix(".localdomain").unwrap_or(host);
    names.contains(&name)
        || name == "localhost"
        || host.ends_with(".localhost")
        || v4.is_ok_and(|address| address.is_loopback() || address.is_unspecified())
        || v6.is_ok_and(|address| address.is_loopback() || address.is_unspecified())
}

/// A scheme without `jdbc:` and the name of a driver, in its usual spelling.
fn usual_scheme(scheme: &str) -> &str {
    let base = scheme.rsplit(':').next().unwrap_or_default();
    match base.split('+').next().unwrap_or_default() {
        "postgres" | "postgresql" => "postgres",
        "mysql" | "mariadb" => "mysql",
        _ if base.len() < scheme.len() => base,
        _ => scheme,
    }
}

fn usual_port(scheme: &str) -> &'static str {
    match scheme {
        "http" | "ws" => "80",
        "https" | "wss" => "443",
        "ftp" => "21",
        "ssh" | "sftp" | "git+ssh" => "22",
        "ldap" => "389",
        "mysql" => "3306",
        "postgres" => "5432",
        "amqp" => "5672",
        "redis" => "6379",
        "git" => "9418",
        "mongodb" => "27017",
        _ => "",
    }
}

/// The digits of a port. A generous reading has them as Python reads numbers.
fn digits(port: &str, reading: Reading) -> Option<String> {
    let is_left_out = |c: char| c.is_whitespace() || matches!(c, '_' | '+');
    let is_generous = reading == Reading::Generous;
    let port: String = port
        .chars()
        .filter(|c| !(is_generous && is_left_out(*c)))
        .collect();
    port.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then_some(port)
}

/// Tests if a text without a scheme begins with a host, as in `10.0.0.1/x`, `host.example/x` and `host:80/x`.
pub(crate) fn begins_with_host(text: &str) -> bool {
    let (authority, path) = text.split_at(text.find(['/', '?', '#']).unwrap_or(text.len()));
    begins_with_authority(authority, path)
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '%')
}

fn begins_with_authority(authority: &str, path: &str) -> bool {
    let host = authority.rsplit('@').next().unwrap_or_default();
    let (host, port) = match host.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port)),
        _ => (host, None),
    };
    let has_port = port.is_some_and(|port| port.contains(|c: char| c.is_ascii_digit()));
    if host.starts_with('[') {
        return host.ends_with(']') && host.contains(':');
    }
    if host.len() < 2 || host.starts_with('.') || !host.chars().all(is_name) {
        return false;
    }
    let is_numeric = || ipv4(&host.to_ascii_lowercase(), 8).is_some();
    has_port
        || (host.matches('.').count() == 3 && is_numeric())
        || (!path.is_empty()
            && (host.contains('.')
                || host.eq_ignore_ascii_case("localhost")
                // Fewer digits are no host that there is.
                || (host.len() > 7 && is_numeric())))
}

/// A host with the letters that its labels spell in ASCII.
fn in_unicode(host: &str) -> String {
    if !host.contains("xn--") {
        return host.to_owned();
    }
    let label = |label: &str| {
        let is_label = label.len() <= LABEL_BYTES;
        let spelled = label.strip_prefix("xn--").filter(|_| is_label);
        let letters = spelled.and_then(punycode::decode_to_string);
        letters.map_or_else(|| label.to_owned(), |letters| folded(&letters))
    };
    let labels: Vec<String> = host.split('.').map(label).collect();
    labels.join(".")
}

/// A host with its labels in ASCII.
fn in_ascii(host: &str) -> String {
    let label = |label: &str| {
        let is_spelled = label.len() <= LABEL_BYTES && !label.is_ascii();
        let spelled = is_spelled.then(|| punycode::encode_str(label));
        let spelled = spelled.flatten().map(|spelled| format!("xn--{spelled}"));
        spelled.unwrap_or_else(|| label.to_owned())
    };
    let labels: Vec<String> = host.split('.').map(label).collect();
    labels.join(".")
}

/// A numeric host in its usual notation. Digits after a zero are octal to most readers, which come last.
fn numeric(host: &str) -> Vec<String> {
    if let Some(inner) = host.strip_prefix('[') {
        let inner = inner.split([']', '%']).next().unwrap_or_default();
        let usual = inner
            .parse()
            .map(|address: Ipv6Addr| match embedded(address) {
                Some(address) => address.to_string(),
                None => format!("[{address}]"),
            });
        return usual.into_iter().collect();
    }
    if !host.starts_with(|c: char| c.is_ascii_digit()) {
        return Vec::new();
    }
    let readings = [10, 8].map(|of_zeros| ipv4(host, of_zeros));
    readings
        .into_iter()
        .flatten()
        .map(|address| address.to_string())
        .collect()
}

/// The IPv4 address that an IPv6 address stands for.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        // `::1` is another matter.
        [0, 0, 0, 0, 0, 0, 0, _] => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
        }
        _ => None,
    }
}

/// One to four numbers in any base, of which the last one fills what is left of the address.
fn ipv4(host: &str, of_zeros: u32) -> Option<Ipv4Addr> {
    let parts: Vec<&str> = host.split('.').collect();
    let (last, firsts) = parts.split_last()?;
    let number = |part: &str| match part.strip_prefix("0x") {
        Some("") => Some(0),
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None if part.starts_with('0') => u32::from_str_radix(part, of_zeros).ok(),
        None => part.parse().ok(),
    };
    let mut address = 0_u32;
    let mut left = 32_u32;
    for part in firsts {
        left = left.checked_sub(8).filter(|left| *left > 0)?;
        address |= u32::from(u8::try_from(number(part)?).ok()?) << left;
    }
    let last = number(last)?;
    let fits = left == 32 || last >> left == 0;
    fits.then(|| Ipv4Addr::from_bits(address | last))
}

/// The path that a share of this machine leads to: `c:/x` of `//host/c$/x`, and `/x` of `//localhost/x`.
pub(crate) fn shared(path: &str) -> Option<String> {
    let after = path.strip_prefix("//")?;
    let after = after.strip_prefix("?/unc/").unwrap_or(after);
    let (host, rest) = after.split_at(after.find('/')?);
    let (share, inner) = rest[1..].split_at(rest[1..].find('/').unwrap_or(rest.len() - 1));
    if let [drive, b'$'] = share.as_bytes()
        && drive.is_ascii_alphabetic()
    {
        return Some(format!("{}:{inner}", char::from(*drive)));
    }
    match host {
        "wsl$" | "wsl.localhost" => Some(inner.to_owned()),
        "localhost" | "." | "--1.ipv6-literal.net" => Some(rest.to_owned()),
        _ if ipv4(host, 8).is_some_and(|address| address.is_loopback()) => Some(rest.to_owned()),
        _ => None,
    }
}
