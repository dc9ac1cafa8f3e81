//! Pins as a file: one human-readable JSON document.
//!
//! ```text
//! {"version":3,"checksum":"8d0e…","server":"math","identity":"33ab…","loss":null,"items":{
//! "(prompt) greet":{"approved":{"fingerprint":"91aa…","scheme":3,"by":"first","at_ms":1,"definition":{…}}},
//! "add":{"approved":{"fingerprint":"0b1f…","scheme":3,"by":"first","at_ms":1,"definition":{…}}},
//! "subtract":{"held":{"why":"new","fingerprint":"77c2…","since_ms":1,"definition":{…}}}
//! }}
//! ```
//!
//! Version 1 had only tools and instructions, under `tools`, and fingerprints of the first scheme.
//! Version 2 had all kinds and fingerprints of the second scheme. Both can be read, and are written
//! back as version 3, which older programs reject by its number.
//!
//! The checksum is the SHA-256 of the version and of everything after the checksum; in versions 1 and
//! 2 it does not cover the version. It detects damage, not forgery: an attacker who can write the file
//! can also write the checksum, or the configuration.

use std::{borrow::Cow, collections::BTreeMap, fmt, io, path::PathBuf, sync::Arc};

use serde::{
    Deserialize, Serialize,
    de::{Deserializer, Error as _, MapAccess, Visitor},
};

use crate::{
    Fingerprint, Pins, limits,
    pins::{Loss, Record},
};

const VERSION: u64 = 3;
const FIRST_VERSION: u64 = 1;
/// The last version whose number is not part of the checksum.
const LAST_UNSUMMED_VERSION: u64 = 2;
const RECORDS: usize = limits::PINS + limits::RESOURCES;
const OPEN: &str = "{\"version\":";
const CHECKSUM: &str = ",\"checksum\":\"";
const CHECKSUM_DIGITS: usize = 64;
const AFTER: &str = "\",";
const ITEMS: &str = ",\"items\":{";
const CLOSE: &str = "\n}}\n";

/// The reason why pins cannot be read or written. The approved definitions are unknown then, so the
/// caller uses [`Pins::damaged`] instead, which holds every tool.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PinsError {
    /// The file is not a file of pins.
    #[error(
        "the file is not a record of approved definitions, so every definition of the server is held until you approve it"
    )]
    NotPins,
    /// The file was written by another version of this program.
    #[error("the record of approved definitions has version {0}, which this program cannot read")]
    Version(u64),
    /// The file was truncated or changed.
    #[error(
        "the record of approved definitions is damaged, so every definition of the server is held \
         until you approve it"
    )]
    Damaged,
    /// The checksum is correct, but the content is invalid.
    #[error(
        "the record of approved definitions is invalid, so every definition of the server is held \
         until you approve it"
    )]
    Content(#[source] serde_json::Error),
    /// The file is larger than [`limits::PINS_BYTES`].
    #[error(
        "the record of approved definitions has {0} bytes, but at most {max} are allowed",
        max = limits::PINS_BYTES
    )]
    TooLarge(u64),
    /// The file has the name of another server's pins.
    #[error(
        "the record of approved definitions of {server:?} must be in a file named {expected:?}"
    )]
    Misplaced {
        /// The server whose pins they are.
        server: String,
        /// The name that its file should have.
        expected: String,
    },
    /// The file or folder cannot be read or written.
    #[error("cannot {what} {path:?}")]
    Io {
        /// The operation.
        what: &'static str,
        /// The path.
        path: PathBuf,
        /// The underlying I/O error.
        #[source]
        source: io::Error,
    },
}

impl PinsError {
    /// A hint for the user, separate from the message.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::NotPins => "fix or remove the file".into(),
            Self::Version(_) => {
                "use the version that wrote it, or remove the file and approve the server's \
                 definitions again"
                    .into()
            }
            Self::TooLarge(_) => {
                "remove the file and approve the server's definitions again".into()
            }
            Self::Misplaced { .. } => "rename the file, or remove it".into(),
            Self::Io { .. } => {
                "check its owner and permissions, and that the disk is not full".into()
            }
            Self::Damaged | Self::Content(_) => return None,
        })
    }
}

impl Pins {
    /// Encodes the pins as a file.
    pub fn encode(&self) -> Vec<u8> {
        let head = Head {
            server: &self.server,
            identity: self.identity,
            loss: self.loss,
            tools_only: self.tools_only,
        };
        let mut body = Vec::new();
        // Serializing structs of strings, numbers and valid JSON to a vector cannot fail.
        let _ = serde_json::to_writer(&mut body, &head);
        // The members of the head are the first ones of the document.
        body.pop();
        body.extend_from_slice(ITEMS.as_bytes());
        for (n, (tool, record)) in self.records.iter().enumerate() {
            body.extend_from_slice(if n == 0 { b"\n" } else { b",\n" });
            let _ = serde_json::to_writer(&mut body, tool);
            body.push(b':');
            let _ = serde_json::to_writer(&mut body, record);
        }
        body.extend_from_slice(CLOSE.as_bytes());
        Self::seal(VERSION, body.get(1..).unwrap_or_default())
    }

    /// Creates a file of a version with these members after the checksum, which is correct for any of
    /// them.
    pub fn seal(version: u64, members: &[u8]) -> Vec<u8> {
        let rest = [AFTER.as_bytes(), members].concat();
        let sum = checksum(version, &rest);
        let mut out = format!("{OPEN}{version}{CHECKSUM}{sum}").into_bytes();
        out.extend(rest);
        out
    }

    /// Decodes a file.
    pub fn decode(file: &[u8]) -> Result<Self, PinsError> {
        if file.len() > limits::PINS_BYTES {
            return Err(PinsError::TooLarge(file.len() as u64));
        }
        let version = check(file)?;
        let document: Document = serde_json::from_slice(file).map_err(PinsError::Content)?;
        Ok(Self {
            server: document.server,
            identity: document.identity,
            loss: document.loss,
            tools_only: document.tools_only || version == FIRST_VERSION,
            records: document.items.0,
        })
    }
}

/// The checksum of a file. Since several versions have the same content, it covers the version as
/// well.
fn checksum(version: u64, rest: &[u8]) -> Fingerprint {
    let version = if version > LAST_UNSUMMED_VERSION {
        version.to_string()
    } else {
        String::new()
    };
    Fingerprint::of_all([version.as_bytes(), rest])
}

/// Checks the version and the checksum of a file, and returns the version.
fn check(file: &[u8]) -> Result<u64, PinsError> {
    let rest = file
        .strip_prefix(OPEN.as_bytes())
        .ok_or(PinsError::NotPins)?;
    let digits = rest
        .iter()
        .take(20)
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let (version, rest) = rest.split_at(digits);
    let version = std::str::from_utf8(version).unwrap_or_default();
    let version = version.parse().map_err(|_| PinsError::NotPins)?;
    if !(FIRST_VERSION..=VERSION).contains(&version) {
        return Err(PinsError::Version(version));
    }
    let rest = rest
        .strip_prefix(CHECKSUM.as_bytes())
        .ok_or(PinsError::NotPins)?;
    let (sum, rest) = rest
        .split_at_checked(CHECKSUM_DIGITS)
        .ok_or(PinsError::Damaged)?;
    let sum = std::str::from_utf8(sum).unwrap_or_default();
    let sum: Fingerprint = sum.parse().map_err(|_| PinsError::Damaged)?;
    if sum != checksum(version, rest) {
        return Err(PinsError::Damaged);
    }
    Ok(version)
}

#[derive(Serialize)]
struct Head<'a> {
    server: &'a str,
    identity: Fingerprint,
    loss: Option<Loss>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tools_only: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(rename = "version")]
    _version: u64,
    #[serde(rename = "checksum")]
    _checksum: String,
    server: String,
    identity: Fingerprint,
    loss: Option<Loss>,
    #[serde(default)]
    tools_only: bool,
    #[serde(alias = "tools")]
    items: Records,
}

/// The records, without duplicates and within the limits.
struct Records(BTreeMap<Arc<str>, Record>);

impl<'de> Deserialize<'de> for Records {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bounded;
        impl<'de> Visitor<'de> for Bounded {
            type Value = Records;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "the records of at most {RECORDS} items")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Records, A::Error> {
                let mut records = BTreeMap::new();
                while let Some((tool, record)) = map.next_entry::<Arc<str>, Record>()? {
                    if records.len() == RECORDS {
                        return Err(A::Error::invalid_length(records.len() + 1, &self));
                    }
                    if tool.len() > limits::KEY_BYTES || record.rejected.len() > limits::REJECTIONS
                    {
                        return Err(A::Error::custom("a record is too large"));
                    }
                    if records.insert(tool, record).is_some() {
                        return Err(A::Error::custom("a tool has two records"));
                    }
                }
                Ok(Records(records))
            }
        }
        deserializer.deserialize_map(Bounded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Scheme;

    fn with_tools(tools: &str) -> Vec<u8> {
        let identity = Fingerprint::of(b"x");
        let rest = format!(r#""server":"s","identity":"{identity}","loss":null,"items":{tools}}}"#);
        Pins::seal(VERSION, rest.as_bytes())
    }

    #[test]
    fn wrong_content_fails_despite_correct_checksum() {
        assert_eq!(
            Pins::decode(&with_tools("{}")).unwrap(),
            Pins::new("s", "x")
        );
        let many: Vec<_> = (0..=RECORDS).map(|n| format!("\"{n}\":{{}}")).collect();
        let long = "a".repeat(limits::KEY_BYTES + 1);
        let zeros = vec![format!("\"{}\"", "0".repeat(64)); limits::REJECTIONS + 1].join(",");
        for tools in [
            "",
            "[]",
            "null",
            "{\"a\":1}",
            "{\"a\":{},\"a\":{}}",
            "{\"a\":{\"other\":1}}",
            "{\"a\":{\"approved\":{\"fingerprint\":\"x\",\"by\":\"first\",\"at_ms\":1,\"definition\":null}}}",
            "{\"a\":{\"vanished_ms\":-1}}",
            &format!("{{{}}}", many.join(",")),
            &format!("{{\"{long}\":{{}}}}"),
            &format!("{{\"a\":{{\"rejected\":[{zeros}]}}}}"),
        ] {
            let read = Pins::decode(&with_tools(tools));
            assert!(matches!(read, Err(PinsError::Content(_))), "{tools}");
        }
    }

    /// Older programs reject a newer version by its number, and name the program that wrote it.
    #[test]
    fn versions_up_to_this_one_are_read() {
        let members = format!(
            r#""server":"s","identity":"{}","loss":null,"items":{{}}}}"#,
            Fingerprint::of(b"x")
        );
        for version in FIRST_VERSION..=VERSION {
            let pins = Pins::decode(&Pins::seal(version, members.as_bytes())).unwrap();
            assert_eq!(pins.tools_only, version == FIRST_VERSION);
            assert!(pins.encode().starts_with(br#"{"version":3,"#));
        }
        // A program that does not know the scheme must not treat the file as damaged.
        assert_eq!((VERSION, u8::from(Scheme::NOW)), (3, 3));
    }

    #[test]
    fn other_files_and_other_versions_are_distinguished() {
        let cases: [(&[u8], &str); 5] = [
            (b"", "not a record"),
            (b"{}", "not a record"),
            (b"{\"version\":99999999999999999999999,", "not a record"),
            (b"{\"version\":4,", "version 4"),
            (b"{\"version\":1,\"checksum\":\"00", "damaged"),
        ];
        for (file, says) in cases {
            let error = Pins::decode(file).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
