//! `switchboard secret`: values that servers need and that should stay out of configuration files.

pub(super) mod moving;
mod store;

use std::io::{self, IsTerminal as _, Read as _, Write as _};

use clap::{Args, Subcommand};
use rustix::{
    io::Errno,
    termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr},
};
use serde_json::json;
use switchboard_config::{Config, Home, is_pasted_value};

use self::store::SECRET_BYTES;
pub(super) use self::store::Store;
use switchboard_terminal::{error::Error, print};

/// Store, list and remove secrets.
///
/// `${secret:NAME}` in switchboard.json stands for the secret NAME. Each secret is a file in the directory
/// `secrets` that only you can read.
#[derive(Debug, Args)]
pub struct Secret {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Store a secret, read from standard input or typed without echo
    #[command(after_long_help = "\
Examples:
  switchboard secret set github            prompt for the value
  pass show github | switchboard secret set github")]
    Set {
        /// Name of the secret
        name: String,
    },
    /// List the names of secrets and the servers that use them
    #[command(after_long_help = "\
Examples:
  switchboard secret list
  switchboard secret list --json")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a secret
    #[command(
        visible_alias = "remove",
        after_long_help = "\
Example:
  switchboard secret rm github"
    )]
    Rm {
        /// Name of the secret
        name: String,
        /// Remove it even if a server uses it
        #[arg(long)]
        force: bool,
    },
}

/// Runs the command.
pub fn run(home: &Home, args: &Secret) -> Result<(), Error> {
    match &args.what {
        What::Set { name } => set(home, name),
        What::List { json } => list(home, *json),
        What::Rm { name, force } => remove(home, name, *force),
    }
}

fn set(home: &Home, name: &str) -> Result<(), Error> {
    if is_pasted_value(name) {
        return Err(Error::new(
            "this name looks like the value of a secret, and names are not hidden",
        )
        .hint("choose a name, such as `mail`; the value is read from standard input"));
    }
    store::check_name(name)?;
    let value = read_value(name)?;
    let store = Store::new(home);
    let done = if store.has(name) {
        "replaced"
    } else {
        "stored"
    };
    store.set(name, &value)?;
    print::say(&format!("{done} the secret `{name}`"));
    let config = Config::load(home.config_file()).unwrap_or_default();
    match config.secrets_used().get(name) {
        Some(owners) => {
            let owners: Vec<_> = owners.iter().map(|owner| format!("`{owner}`")).collect();
            print::hint(&format!(
                "used by {}; a server reads the new value when it starts: `switchboard restart NAME`",
                owners.join(", ")
            ));
        }
        None => print::hint(&format!("use it in switchboard.json as ${{secret:{name}}}")),
    }
    Ok(())
}

fn list(home: &Home, as_json: bool) -> Result<(), Error> {
    let stored = Store::new(home).list()?;
    let used = Config::load(home.config_file())?.secrets_used();
    let owners = |name: &str| -> Vec<&str> {
        let owners = used.get(name).into_iter().flatten();
        owners.map(String::as_str).collect()
    };
    let missing = || {
        used.keys()
            .filter(|name| stored.iter().all(|there| there.name != **name))
    };
    if as_json {
        let there = stored.iter().map(|secret| {
            json!({"name": secret.name, "mode": format!("{:o}", secret.mode), "usedBy": owners(&secret.name)})
        });
        let gone =
            missing().map(|name| json!({"name": name, "mode": null, "usedBy": owners(name)}));
        let all: Vec<_> = there.chain(gone).collect();
        return print::json(&json!({"secrets": all}));
    }
    if stored.is_empty() && used.is_empty() {
        print::say("there are no secrets");
        print::hint("`switchboard secret set NAME` stores one");
        return Ok(());
    }
    let mut table = print::Table::new(&["NAME", "MODE", "USED BY"]);
    for secret in &stored {
        table.row([
            secret.name.clone(),
            format!("{:o}", secret.mode),
            owners(&secret.name).join(", "),
        ]);
    }
    for name in missing() {
        table.row([name.clone(), "missing".to_owned(), owners(name).join(", ")]);
    }
    table.print()
}

fn remove(home: &Home, name: &str, force: bool) -> Result<(), Error> {
    if !force {
        let config = Config::load(home.config_file()).map_err(|error| {
            let failure = Error::from(error);
            Error::new(format!(
                "cannot check whether the secret `{name}` is used: {}",
                failure.message()
            ))
            .hint("fix the file first, or use --force")
        })?;
        if let Some(owners) = config.secrets_used().get(name) {
            let owners: Vec<_> = owners.iter().map(|owner| format!("`{owner}`")).collect();
            return Err(Error::new(format!(
                "the secret `{name}` is used by {}",
                owners.join(", ")
            ))
            .hint("remove it there first, or use --force"));
        }
    }
    if Store::new(home).remove(name)? {
        print::say(&format!("removed the secret `{name}`"));
        return Ok(());
    }
    Err(Error::new(format!("there is no secret `{name}`"))
        .hint("`switchboard secret list` shows the names"))
}

/// Reads the value, without the line break at its end.
fn read_value(name: &str) -> Result<String, Error> {
    let cannot = |error| Error::new(format!("cannot read the secret: {error}"));
    if io::stdin().is_terminal() {
        let typed = prompt(name).map_err(cannot)?;
        let typed = typed.ok_or_else(|| Error::new("nothing was stored"))?;
        // Arrow keys and similar ones arrive as control characters.
        if typed.chars().any(char::is_control) {
            return Err(Error::new("the secret contains a control character")
                .hint("type it again, or pass it on standard input; nothing was stored"));
        }
        return Ok(typed);
    }
    let mut bytes = Vec::new();
    // Two more bytes for a line break, which is not part of the secret.
    let mut input = io::stdin().take(SECRET_BYTES + 3);
    input.read_to_end(&mut bytes).map_err(cannot)?;
    let text = String::from_utf8(bytes).map_err(|_| Error::new("the secret is not UTF-8 text"))?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(text.strip_suffix('\r').unwrap_or(text).to_owned())
}

/// Reads a line from the terminal without echo. Returns `None` if the user cancels.
fn prompt(name: &str) -> io::Result<Option<String>> {
    let mut screen = io::stderr();
    // Echo goes off before the prompt, so that a fast typist does not see the secret.
    let quiet = Quiet::new()?;
    write!(screen, "Value of {name} (not shown): ")?;
    screen.flush()?;
    let mut line = Vec::new();
    let ended = loop {
        let mut key = [0];
        match rustix::io::read(io::stdin(), &mut key) {
            Ok(0) | Err(Errno::IO) => break false,
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        match key[0] {
            b'\n' | b'\r' => break true,
            // Ctrl-C and Ctrl-D.
            3 | 4 => break false,
            // The last character may have several bytes.
            8 | 127 => while line.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {},
            byte if line.len() as u64 <= SECRET_BYTES => line.push(byte),
            _ => {}
        }
    };
    drop(quiet);
    writeln!(screen)?;
    let text = String::from_utf8(line).map_err(|_| io::Error::other("it is not UTF-8 text"))?;
    Ok(ended.then_some(text))
}

/// A terminal without echo, until it is dropped.
struct Quiet(Termios);

impl Quiet {
    fn new() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut now = before.clone();
        // Ctrl-C arrives as a key, so that the terminal is restored before the program exits.
        now.local_modes
            .remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        now.special_codes[SpecialCodeIndex::VMIN] = 1;
        now.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(io::stdin(), OptionalActions::Now, &now)?;
        Ok(Self(before))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // If the terminal is gone, there is nothing to restore.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}
