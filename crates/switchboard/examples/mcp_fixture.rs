//! An MCP server on standard input and output that behaves as well, or as badly, as it is told.
//!
//! The end-to-end tests put it behind the gateway. It speaks 2025-06-18 and has no runtime, so that
//! nothing in it tidies up behind a test's back.
//!
//! ```text
//! mcp_fixture [--tools N] [--init-delay MS] [--mute] [--ignore-eof] [--ignore-term]
//!             [--child plain|setsid|double] [--fail-after MS] [--seen FILE] [--starts FILE]
//!             [--script FILE]
//! ```
//!
//! A script is a JSON object: by method (and cursor, after a space), the rest of the response, such as
//! `{"result":{}}`, with `delayMs` if it comes late. It is read for every request, and every request is
//! noted in `FILE.log`. Whatever is not in it is answered as ever.

use std::{
    collections::BTreeSet,
    env,
    fs::OpenOptions,
    io::{self, BufRead, Read, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    process::{Command, ExitCode, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "mcp_fixture: {error}");
            ExitCode::FAILURE
        }
    }
}

/// How it behaves.
#[derive(Default)]
#[allow(clippy::struct_excessive_bools)] // Each is a manner of its own.
struct Manners {
    /// Tools beyond the usual ones.
    tools: usize,
    init_delay: Duration,
    /// Never answers `initialize`.
    mute: bool,
    ignore_eof: bool,
    ignore_term: bool,
    child: Option<Child>,
    /// Ends with an error so long after `initialize`.
    fail_after: Option<Duration>,
    /// Where it writes which calls were withdrawn.
    seen: Option<String>,
    /// Where it writes that it was started.
    starts: Option<String>,
    /// Where it reads what to answer.
    script: Option<String>,
    /// Has prompts of the names of its tools.
    prompts: bool,
    /// Says that its tools have changed whenever it is asked for them, and notes that here.
    restless: Option<String>,
    /// Is nobody's server, but somebody's child.
    linger: Option<Child>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Child {
    Plain,
    Setsid,
    Double,
}

impl Child {
    fn parse(word: &str) -> io::Result<Self> {
        match word {
            "plain" => Ok(Self::Plain),
            "setsid" => Ok(Self::Setsid),
            "double" => Ok(Self::Double),
            other => Err(wrong(other)),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Setsid => "setsid",
            Self::Double => "double",
        }
    }
}

fn wrong(word: &str) -> io::Error {
    io::Error::other(format!("cannot make sense of {word:?}"))
}

fn run(args: &[String]) -> io::Result<()> {
    let mut manners = Manners::default();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let mut value = || rest.next().ok_or_else(|| wrong(arg));
        let millis = |text: &String| text.parse().map(Duration::from_millis);
        match &**arg {
            "--tools" => manners.tools = value()?.parse().map_err(|_| wrong(arg))?,
            "--init-delay" => manners.init_delay = millis(value()?).map_err(|_| wrong(arg))?,
            "--mute" => manners.mute = true,
            "--ignore-eof" => manners.ignore_eof = true,
            "--ignore-term" => manners.ignore_term = true,
            "--child" => manners.child = Some(Child::parse(value()?)?),
            "--fail-after" => {
                manners.fail_after = Some(millis(value()?).map_err(|_| wrong(arg))?);
            }
            "--seen" => manners.seen = Some(value()?.clone()),
            "--prompts" => manners.prompts = true,
            "--restless" => manners.restless = Some(value()?.clone()),
            "--script" => manners.script = Some(value()?.clone()),
            "--starts" => manners.starts = Some(value()?.clone()),
            "--linger" => manners.linger = Some(Child::parse(value()?)?),
            other => return Err(wrong(other)),
        }
    }
    if manners.ignore_term && env::var_os(DEAF).is_none() {
        // What is ignored stays ignored through `exec`, and a shell can say so without unsafe code.
        let error = Command::new("sh")
            .args(["-c", "trap '' TERM; exec \"$0\" \"$@\""])
            .arg(env::current_exe()?)
            .args(args)
            .env(DEAF, "1")
            .exec();
        return Err(error);
    }
    match manners.linger {
        Some(child) => linger(child),
        None => serve(manners),
    }
}

/// Set when SIGTERM is ignored already.
const DEAF: &str = "MCP_FIXTURE_DEAF";

/// Starts a child, and waits until it is where it wants to be.
fn start_child(child: Child) -> io::Result<()> {
    let (here, there) = UnixStream::pair()?;
    // Its output is the server's: whoever waits for the end of that waits for the child as well.
    Command::new(env::current_exe()?)
        .args(["--linger", child.word()])
        .stdin(Stdio::from(OwnedFd::from(there)))
        .spawn()?;
    let mut ready = [0];
    (&here).read_exact(&mut ready)
}

/// Is a child that nothing but a signal ends.
fn linger(child: Child) -> io::Result<()> {
    if child != Child::Plain {
        rustix::process::setsid()?;
    }
    let parent = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    if child == Child::Double {
        Command::new(env::current_exe()?)
            .args(["--linger", "plain"])
            .stdin(Stdio::from(OwnedFd::from(parent)))
            .spawn()?;
        return Ok(());
    }
    (&parent).write_all(b"!")?;
    for_ever()
}

fn for_ever() -> ! {
    loop {
        thread::park();
    }
}

struct Server {
    manners: Manners,
    tools: Mutex<BTreeSet<String>>,
}

const USUAL: [&str; 10] = [
    "add_tool",
    "big",
    "die",
    "echo",
    "env",
    "hang",
    "pid",
    "progress",
    "remove_tool",
    "sleep",
];

fn serve(manners: Manners) -> io::Result<()> {
    if let Some(file) = &manners.starts {
        append(file, &std::process::id().to_string())?;
    }
    if let Some(child) = manners.child {
        start_child(child)?;
    }
    let more = (0..manners.tools).map(|n| format!("t{n}"));
    let tools = USUAL.map(str::to_owned).into_iter().chain(more).collect();
    let server = Arc::new(Server {
        manners,
        tools: Mutex::new(tools),
    });
    for line in io::stdin().lock().lines() {
        let line = line?;
        if let Ok(message) = serde_json::from_str(&line) {
            // That nobody listens any more is no reason to leave before the input ends.
            let _ = server.take(message);
        }
    }
    if server.manners.ignore_eof {
        for_ever();
    }
    Ok(())
}

fn append(file: &str, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    file.write_all(format!("{line}\n").as_bytes())
}

/// The response to a request that a script has, when its time has come.
fn scripted(script: &str, method: &str, params: &Value, id: &Value) -> io::Result<Option<Value>> {
    let script: Value = serde_json::from_slice(&std::fs::read(script)?)?;
    let key = match params["cursor"].as_str() {
        Some(cursor) => format!("{method} {cursor}"),
        None => method.to_owned(),
    };
    let Some(answer) = script.get(key) else {
        return Ok(None);
    };
    let mut answer = answer.clone();
    if let Some(delay) = answer["delayMs"].as_u64() {
        thread::sleep(Duration::from_millis(delay));
    }
    answer["jsonrpc"] = json!("2.0");
    answer["id"] = id.clone();
    Ok(Some(answer))
}

impl Server {
    fn take(self: &Arc<Self>, message: Value) -> io::Result<()> {
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        let Some(id) = message.get("id").cloned() else {
            if method == "notifications/cancelled"
                && let Some(seen) = &self.manners.seen
            {
                append(seen, &message["params"].to_string())?;
            }
            return Ok(());
        };
        if let Some(script) = &self.manners.script {
            append(
                &format!("{script}.log"),
                &format!("{method} {}", message["params"]),
            )?;
            if let Some(answer) = scripted(script, &method, &message["params"], &id)? {
                return say(&answer);
            }
        }
        let result = match &*method {
            "initialize" => return self.initialize(&id),
            "ping" => json!({}),
            "tools/list" => {
                if let Some(file) = &self.manners.restless {
                    append(file, "asked")?;
                    notify("notifications/tools/list_changed", &json!({}))?;
                }
                json!({ "tools": self.list() })
            }
            "prompts/list" if self.manners.prompts => {
                let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
                let prompts: Vec<_> = tools.iter().map(|name| json!({ "name": name })).collect();
                json!({ "prompts": prompts })
            }
            "tools/call" => {
                let server = Arc::clone(self);
                thread::spawn(move || server.call(&id, &message["params"]));
                return Ok(());
            }
            other => {
                let error = json!({ "code": -32601, "message": format!("no method {other}") });
                return say(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
            }
        };
        say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
    }

    fn initialize(&self, id: &Value) -> io::Result<()> {
        if self.manners.mute {
            return Ok(());
        }
        thread::sleep(self.manners.init_delay);
        if let Some(after) = self.manners.fail_after {
            thread::spawn(move || {
                thread::sleep(after);
                std::process::exit(3);
            });
        }
        let mut capabilities = json!({ "tools": { "listChanged": true } });
        if self.manners.prompts {
            capabilities["prompts"] = json!({ "listChanged": true });
        }
        let result = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": capabilities,
            "serverInfo": { "name": "fixture", "version": "1.0" },
        });
        say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
    }

    fn list(&self) -> Vec<Value> {
        let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        tools
            .iter()
            .map(|name| json!({ "name": name, "inputSchema": { "type": "object" } }))
            .collect()
    }

    fn call(&self, id: &Value, params: &Value) -> io::Result<()> {
        let name = params["name"].as_str().unwrap_or_default();
        let arguments = &params["arguments"];
        let number = |name: &str| arguments[name].as_u64().unwrap_or_default();
        let word = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
        let there = {
            let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
            tools.contains(name)
        };
        if !there {
            let error = json!({ "code": -32602, "message": format!("no tool {name}") });
            return say(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        }
        let text = match name {
            "echo" => {
                thread::sleep(Duration::from_millis(number("ms")));
                word("text")
            }
            "sleep" => {
                thread::sleep(Duration::from_millis(number("ms")));
                "slept".to_owned()
            }
            "hang" => {
                if let Some(seen) = &self.manners.seen {
                    append(seen, &json!({ "hangs": id }).to_string())?;
                }
                return Ok(());
            }
            "die" => std::process::exit(3),
            "progress" => {
                let token = &params["_meta"]["progressToken"];
                for n in 1..=number("n") {
                    notify(
                        "notifications/progress",
                        &json!({ "progressToken": token, "progress": n }),
                    )?;
                }
                "progressed".to_owned()
            }
            "big" => "x".repeat(usize::try_from(number("bytes")).unwrap_or_default()),
            "add_tool" | "remove_tool" => {
                {
                    let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
                    if name == "add_tool" {
                        tools.insert(word("name"));
                    } else {
                        tools.remove(&word("name"));
                    }
                }
                notify("notifications/tools/list_changed", &json!({}))?;
                if self.manners.prompts {
                    notify("notifications/prompts/list_changed", &json!({}))?;
                }
                "changed".to_owned()
            }
            "env" => env::var(word("name")).unwrap_or_default(),
            "pid" => std::process::id().to_string(),
            other => format!("{other} was called"),
        };
        let result = json!({ "content": [{ "type": "text", "text": text }] });
        say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
    }
}

fn notify(method: &str, params: &Value) -> io::Result<()> {
    say(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
}

fn say(message: &Value) -> io::Result<()> {
    let mut line = message.to_string();
    line.push('\n');
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes())?;
    out.flush()
}
