//! `switchboard audit`: the audit log, read from its file, with or without a gateway.

mod archive;

use std::{
    collections::VecDeque,
    fs::OpenOptions,
    io::{self, BufWriter, Write},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use serde_json::{Value, json};
use switchboard_config::Home;
use switchboard_store::{Audited, StoreError};
use switchboard_terminal::visible::{pretty, visible_line};
use switchboard_terminal::{
    error::Error,
    print::{self, Table},
};
use switchboard_text::hex;
use switchboard_wire::Raw;

use super::{config_file::cannot, times::moment, words::count};

/// Read and verify the audit log.
///
/// Each entry is chained to the one before it by a hash. Keep the head (the number and the hash of the
/// last entry) elsewhere to prove later that nothing before it was changed. No gateway is needed.
#[derive(Debug, Args)]
pub struct Audit {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    #[command(after_long_help = "\
Examples:
  switchboard audit list
  switchboard audit list -n 100 --json")]
    List(List),
    #[command(after_long_help = "\
Examples:
  switchboard audit verify
  switchboard audit verify --expect 1200:8b9026185de7…   check a head that you kept
  switchboard audit verify --archive 2026-10.jsonl       check the archive as well
  switchboard audit verify --json")]
    Verify(Verify),
    #[command(after_long_help = "\
Examples:
  switchboard audit export > decisions.jsonl
  switchboard audit export decisions.csv --format csv
  switchboard audit export --since 1200")]
    Export(Export),
    #[command(after_long_help = "\
Examples:
  switchboard audit archive 2026-10.jsonl --before 2026-11-01
  switchboard audit archive everything.jsonl")]
    Archive(archive::Archive),
}

/// Show the last entries
#[derive(Debug, Args)]
struct List {
    /// Number of entries to show
    #[arg(
        long,
        alias = "lines",
        short = 'n',
        value_name = "N",
        default_value_t = 30
    )]
    limit: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Verify that every entry is present and unchanged.
///
/// If not, the exit code is 1, and the output names the first entry that cannot be trusted.
#[derive(Debug, Args)]
struct Verify {
    /// Number and hash of an entry that you kept earlier; fails if the hash differs
    #[arg(long, value_name = "NUMBER:HASH")]
    expect: Option<String>,
    /// Archive of the log, checked together with the log; can be repeated, oldest first
    #[arg(long, value_name = "FILE")]
    archive: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Write all entries to a file or to standard output
#[derive(Debug, Args)]
struct Export {
    /// File to create; standard output if omitted
    file: Option<PathBuf>,
    /// Only entries after this number
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    since: u64,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One JSON object per line
    Jsonl,
    /// Comma-separated values with a header line
    Csv,
}

/// Runs the command.
pub fn run(home: &Home, args: &Audit) -> Result<(), Error> {
    match &args.what {
        What::List(args) => list(home, args),
        What::Verify(args) => verify(home, args),
        What::Export(args) => export(home, args),
        What::Archive(args) => archive::run(home, args),
    }
}

/// An exported entry, with everything that its hash covers.
#[derive(Serialize)]
struct Entry<'a> {
    seq: u64,
    at: String,
    what: &'a str,
    subject: &'a str,
    body: Raw,
    /// The exact bytes of the body, if a line of JSON cannot represent them.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    hash: String,
}

#[derive(Serialize)]
struct Entries<'a> {
    entries: Vec<Entry<'a>>,
}

impl<'a> Entry<'a> {
    fn new(audited: &'a Audited) -> Self {
        let entry = &audited.entry;
        let body = Raw::parse(entry.body.to_string()).ok();
        Self {
            seq: audited.seq,
            at: time(audited),
            what: &entry.what,
            subject: &entry.subject,
            // A body that is not JSON was not written by a gateway; it is exported as text.
            text: (body.is_none() || entry.body.contains(['\r', '\n'])).then_some(&*entry.body),
            body: body.unwrap_or_else(|| Raw::string(&entry.body)),
            hash: hex::encode(&audited.hash),
        }
    }
}

/// Formats the time to the microsecond, which is the precision that the hash covers.
fn time(audited: &Audited) -> String {
    jiff::Timestamp::try_from(audited.entry.at)
        .map_or_else(|_| "out of range".to_owned(), |time| format!("{time:.6}"))
}

/// Digits of a hash to print, enough to identify it.
const HASH_DIGITS: usize = 12;

fn list(home: &Home, args: &List) -> Result<(), Error> {
    let mut last = VecDeque::new();
    let file = log_of(home)?;
    walk(&file, 0, |audited| {
        last.push_back(audited);
        if last.len() > args.limit {
            last.pop_front();
        }
        Ok(())
    })?;
    if args.json {
        let entries = last.iter().map(Entry::new).collect();
        let list = Raw::from_value(&Entries { entries })
            .map_err(|error| Error::new(format!("cannot write the output as JSON: {error}")))?;
        return print::data(&format!("{}\n", pretty(&list)));
    }
    if last.is_empty() {
        let archived = switchboard_store::anchor(&file).map_err(|error| failure(&error))?;
        print::say(&match archived.seq {
            0 => "the audit log is empty".to_owned(),
            1 => "the only entry is in an archive".to_owned(),
            all => format!("all {all} entries are in archives"),
        });
        return Ok(());
    }
    let mut table = Table::new(&["SEQ", "TIME", "EVENT", "ID", "DETAILS"]);
    for audited in &last {
        let entry = &audited.entry;
        let time = jiff::Timestamp::try_from(entry.at);
        table.row([
            audited.seq.to_string(),
            time.map_or_else(|_| String::new(), moment),
            visible_line(&entry.what),
            visible_line(&entry.subject),
            about(&entry.body),
        ]);
    }
    table.print()
}

/// A short description of an entry.
fn about(body: &str) -> String {
    let Ok(body) = serde_json::from_str::<Value>(body) else {
        return visible_line(body);
    };
    let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
    let place = match (text("server"), text("tool")) {
        (Some(server), Some(tool)) => Some(format!("{server}:{tool}")),
        (server, tool) => server.or(tool),
    };
    // The decision comes first, because a narrow terminal cuts the end.
    let first = [
        text("action")
            .or_else(|| text("decision"))
            .or_else(|| text("status")),
        text("kind"),
        place,
    ];
    let last = [
        text("why"),
        text("rule").map(|rule| format!("rule `{rule}`")),
        text("reason").map(|reason| format!("({reason})")),
        text("error"),
        text("note").map(|note| format!("(note: {note})")),
        text("by").map(|by| format!("by {by}")),
        text("rememberedBy").map(|by| format!("remembered by {by}")),
        body.get("actor").map(actor),
    ];
    let members = body.as_object().into_iter().flatten();
    let others = members.filter_map(|(name, value)| other(name, value));
    let first = first.into_iter().flatten();
    let parts: Vec<String> = first
        .chain(others)
        .chain(last.into_iter().flatten())
        .collect();
    visible_line(&parts.join(" "))
}

/// Members that `about` shows separately, or that are for programs.
const TOLD: [&str; 26] = [
    "kind",
    "server",
    "tool",
    "action",
    "status",
    "by",
    "actor",
    "note",
    "why",
    "rule",
    "reason",
    "error",
    "door",
    "peer",
    "client",
    "remember",
    "agreed",
    "tookMs",
    "request",
    "edits",
    "answer",
    "usage",
    "uid",
    "decision",
    "count",
    "rememberedBy",
];

/// Any other member with its name, if it is short.
fn other(name: &str, value: &Value) -> Option<String> {
    const LONGEST: usize = 120;
    if TOLD.contains(&name) {
        return None;
    }
    let text = match value {
        Value::Null => return None,
        Value::String(text) => text.clone(),
        Value::Array(list) if list.iter().all(Value::is_string) => {
            let texts: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
            texts.join(", ")
        }
        other => other.to_string(),
    };
    if text.is_empty() {
        return None;
    }
    let end = text.floor_char_boundary(LONGEST);
    let more = if end < text.len() { "…" } else { "" };
    Some(format!("{name}: {}{more}", &text[..end]))
}

/// `by owner via socket (switchboard, pid 123)`.
fn actor(actor: &Value) -> String {
    let text = |name: &str| actor.get(name).and_then(Value::as_str);
    let by = text("principal").map(|principal| format!("by {principal} "));
    let by = by.unwrap_or_default();
    let peer = actor.get("peer");
    let pid = peer.and_then(|peer| peer.get("pid")?.as_u64());
    let program = peer.and_then(|peer| peer.get("program")?.as_str()?.rsplit('/').next());
    let door = text("door").unwrap_or("an unknown connection");
    match (program, pid) {
        (Some(program), Some(pid)) => format!("{by}via {door} ({program}, pid {pid})"),
        (None, Some(pid)) => format!("{by}via {door} (pid {pid})"),
        (_, None) => format!("{by}via {door}"),
    }
}

fn verify(home: &Home, args: &Verify) -> Result<(), Error> {
    let file = log_of(home)?;
    let verdict = switchboard_store::verify(&file).map_err(|error| failure(&error))?;
    if let Some(expected) = &args.expect {
        check_expected(&file, expected)?;
    }
    archive::check(&file, &args.archive)?;
    let head = hex::encode(&verdict.head);
    let broken = verdict.broken;
    if args.json {
        let broken = broken.map(|broken| json!({"seq": broken.seq, "why": broken.why.to_string()}));
        let is_whole = broken.is_none();
        print::json(
            &json!({"entries": verdict.entries, "archived": verdict.archived, "head": head, "broken": broken}),
        )?;
        return if is_whole {
            Ok(())
        } else {
            Err(Error::reported())
        };
    }
    let Some(broken) = broken else {
        let (checked, unchecked) = match verdict.archived {
            archived if args.archive.is_empty() => (verdict.entries - archived, archived),
            _ => (verdict.entries, 0),
        };
        let entries = count(checked, "entry", "entries");
        let aside = match unchecked {
            0 => String::new(),
            more => format!("; {more} more in archives were not checked"),
        };
        print::data(&format!(
            "verified {entries}{aside}\nhead  {}:{head}\n",
            verdict.entries
        ))?;
        if unchecked > 0 {
            print::hint("check the archives as well with --archive FILE");
        }
        return Ok(());
    };
    let entries = count(verdict.entries, "entry", "entries");
    print::data(&format!(
        "unchanged from the start: {entries}\nhead  {head}\n"
    ))?;
    Err(Error::new(format!(
        "the log is broken at entry {}: {}",
        broken.seq, broken.why
    ))
    .hint(format!(
        "keep a copy of {}, which was changed or damaged, and compare it with an earlier export",
        file.display()
    )))
}

/// Checks that an entry has the hash that the user kept of it. Nothing else detects a log that was rewritten
/// as a whole, or replaced by an older one.
fn check_expected(file: &Path, expected: &str) -> Result<(), Error> {
    let wrong = || {
        Error::usage(format!(
            "invalid value '{expected}' for '--expect <NUMBER:HASH>': expected NUMBER:HASH"
        ))
        .hint("use the head that `switchboard audit verify` printed, such as 1200:8b9026185de7…")
    };
    let (seq, hash) = expected.split_once(':').ok_or_else(wrong)?;
    let seq: u64 = seq.parse().map_err(|_| wrong())?;
    let hash = hash.to_ascii_lowercase();
    if seq == 0 || hash.len() < HASH_DIGITS || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    let mut found = None;
    let mut later = false;
    let walked = switchboard_store::export(file, seq - 1, |audited| {
        found = (audited.seq == seq).then(|| hex::encode(&audited.hash));
        later = audited.seq > seq;
        // One entry is enough.
        Err(io::ErrorKind::Interrupted.into())
    });
    let found = match (found, walked) {
        (None, Err(error)) if !later => return Err(failure(&error)),
        (found, _) => found,
    };
    match found {
        Some(found) if found.starts_with(&hash) => Ok(()),
        Some(found) => Err(Error::new(format!(
            "the audit log was rewritten or replaced: entry {seq} has the hash {found}, expected {hash}"
        ))
        .hint("compare the log with an earlier export")),
        None if later => Err(
            Error::new(format!("entry {seq} is no longer in the audit log"))
                .hint("look for its number and hash in the archive that it was moved to"),
        ),
        None => Err(Error::new(format!(
            "the audit log was truncated or replaced: it ends before entry {seq}"
        ))
        .hint("compare it with an earlier export")),
    }
}

fn export(home: &Home, args: &Export) -> Result<(), Error> {
    let file = log_of(home)?;
    let Some(path) = &args.file else {
        let mut to = BufWriter::new(io::stdout().lock());
        return write_all(&file, args, &mut to).map(drop);
    };
    let to = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| cannot_make(path, &error))?;
    let written = write_all(&file, args, &mut BufWriter::new(to))?;
    print::say(&format!(
        "wrote {} to {}",
        count(written, "entry", "entries"),
        path.display()
    ));
    Ok(())
}

fn write_all(log: &Path, args: &Export, to: &mut impl Write) -> Result<u64, Error> {
    let mut written = 0;
    if args.format == Format::Csv {
        to.write_all(b"seq,at,what,subject,hash,body\r\n")?;
    }
    walk(log, args.since, |audited| {
        written += 1;
        match args.format {
            Format::Jsonl => {
                // An entry may contain line breaks; between JSON tokens a space is equivalent.
                let line = serde_json::to_string(&Entry::new(&audited))?;
                to.write_all(line.replace(['\r', '\n'], " ").as_bytes())?;
                to.write_all(b"\n")
            }
            Format::Csv => to.write_all(row(&audited).as_bytes()),
        }
    })?;
    to.flush()?;
    Ok(written)
}

/// One line of comma-separated values (RFC 4180).
fn row(audited: &Audited) -> String {
    let entry = &audited.entry;
    let fields = [
        audited.seq.to_string(),
        time(audited),
        entry.what.to_string(),
        entry.subject.to_string(),
        hex::encode(&audited.hash),
        entry.body.to_string(),
    ];
    let fields = fields.map(|field| {
        if field.contains(['"', ',', '\r', '\n']) {
            format!("\"{}\"", field.replace('"', "\"\""))
        } else {
            field
        }
    });
    fields.join(",") + "\r\n"
}

fn cannot_make(path: &Path, error: &io::Error) -> Error {
    if error.kind() == io::ErrorKind::AlreadyExists {
        return Error::new(format!("{} already exists", path.display()))
            .hint("choose another name");
    }
    cannot("create", path, error)
}

/// The path of the log.
fn log_of(home: &Home) -> Result<PathBuf, Error> {
    let file = home.database();
    if file.exists() {
        return Ok(file);
    }
    let message = format!("there is no audit log: {} does not exist", file.display());
    Err(Error::new(message).hint("start a gateway with `switchboard serve`, which creates it"))
}

fn walk(file: &Path, since: u64, each: impl FnMut(Audited) -> io::Result<()>) -> Result<(), Error> {
    switchboard_store::export(file, since, each).map_err(|error| failure(&error))
}

fn failure(error: &StoreError) -> Error {
    match error {
        // A failure to write the output is not a failure of the log.
        StoreError::Export(source) => Error::from(io::Error::from(source.kind())),
        other => Error::from_error(other, other.hint()),
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::UNIX_EPOCH};

    use super::*;

    #[test]
    fn csv_values_are_quoted_if_needed() {
        let entry = switchboard_store::Entry {
            at: UNIX_EPOCH,
            what: "decided".into(),
            subject: "k7,\"x\"".into(),
            body: Arc::from("{\"a\":\"b\nc\"}"),
        };
        let audited = Audited {
            seq: 3,
            entry,
            hash: [0xab; 32],
        };
        let hash = "ab".repeat(32);
        assert_eq!(
            row(&audited),
            format!(
                "3,1970-01-01T00:00:00.000000Z,decided,\"k7,\"\"x\"\"\",{hash},\"{{\"\"a\"\":\"\"b\nc\"\"}}\"\r\n"
            )
        );
    }

    #[test]
    fn entry_has_a_short_description() {
        let body = r#"{"kind":"tool_call","status":"approved","server":"a","tool":"b\u202e","by":"cli:x","action":"approve"}"#;
        assert_eq!(about(body), "approve tool_call a:b⟨U+202E⟩ by cli:x");
        assert_eq!(about("no \u{1b}"), "no ⟨U+001B⟩");
    }
}
