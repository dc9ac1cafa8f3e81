//! References to the caller in the entry of a server, and the directory in which its processes run.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
};

use crate::{
    api_rig::{Rig, program},
    instance_rig::{instances, mirror, open_in, project, rig, told},
    mcp_rig::{Pipe, server, text_of},
    streams,
};

#[tokio::test]
async fn client_name_becomes_a_file_name() {
    let dirs = TempDir::new().unwrap();
    let dir = dirs.path().canonicalize().unwrap();
    let rig = rig(mirror(json!({
        "args": ["mirror", "${client}", "--for=${client}"],
        "env": { "CLIENT": "${client}" },
        "cwd": dir.join("${client}"),
    })))
    .await;
    let long = "n".repeat(300);
    for (name, expected) in [
        ("../../x", "client.._.._x"),
        ("a b  c", "a_b__c"),
        ("--option", "client--option"),
        ("..", "client.."),
        ("\u{1b}[31m\n\0é", "client__31m___"),
        (&long, &"n".repeat(64)),
    ] {
        project(&dirs, expected);
        let mut client = Pipe::open_named(&rig, server("s"), name).await;
        let who = told(&mut client, "whoami").await;
        assert_eq!(who["client"], expected, "{name:?}");
        let args = json!([expected, format!("--for={expected}")]);
        assert_eq!(who["args"], args, "{name:?}");
        assert_eq!(who["cwd"], json!(dir.join(expected)), "{name:?}");
    }
    rig.stop().await;
}

/// The program of the fixture under another name.
fn link_program(link: &Path) {
    std::os::unix::fs::symlink(program(), link).unwrap();
}

#[tokio::test]
async fn command_and_directory_are_those_of_the_project() {
    let dirs = TempDir::new().unwrap();
    let rig = rig(mirror(json!({
        "command": "${project}/server",
        "cwd": "${project}",
    })))
    .await;
    for name in ["a", "b"] {
        let dir = project(&dirs, name);
        link_program(&dir.join("server"));
        let who = told(&mut open_in(&rig, &dir).await, "whoami").await;
        assert_eq!(who["program"], json!(dir.join("server")));
        assert_eq!(who["cwd"], json!(dir));
    }
    rig.stop().await;
}

/// The directories of two processes with this command, which callers in different projects share.
async fn directories(command: &Path, projects: [&Path; 2]) -> [PathBuf; 2] {
    let rig = rig(mirror(json!({ "command": command, "share": "project" }))).await;
    let mut directories = projects.map(Path::to_owned);
    for directory in &mut directories {
        let who = told(&mut open_in(&rig, directory).await, "whoami").await;
        *directory = who["cwd"].as_str().unwrap().into();
    }
    rig.stop().await;
    directories
}

#[tokio::test]
async fn only_programs_without_foreign_code_run_in_projects() {
    let dirs = TempDir::new().unwrap();
    let (a, b) = (project(&dirs, "a"), project(&dirs, "b"));
    let projects = [&*a, &*b];
    assert_eq!(directories(Path::new(program()), projects).await, projects);
    // Such a program would run the code that it finds in the project.
    let node = project(&dirs, "bin").join("node");
    link_program(&node);
    let [one, other] = directories(&node, projects).await;
    assert!(one != other, "{one:?}");
    for own in [one, other] {
        assert!(
            !own.starts_with(dirs.path().canonicalize().unwrap()),
            "{own:?}"
        );
    }
}

/// A server over HTTP, in this process, which tells the address of each request.
struct Far {
    url: String,
    /// The methods that arrived, by the target of their request.
    asked: Arc<Mutex<BTreeMap<String, Vec<String>>>>,
}

impl Far {
    async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let asked = Arc::default();
        let far = Self {
            url,
            asked: Arc::clone(&asked),
        };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let asked = Arc::clone(&asked);
                tokio::spawn(async move { serve(stream, &asked).await });
            }
        });
        far
    }

    /// The number of requests with this method, by their target.
    fn count(&self, method: &str) -> Vec<(String, usize)> {
        let asked = self.asked.lock().unwrap();
        let count = |asked: &[String]| asked.iter().filter(|known| *known == method).count();
        let counts = asked.iter().map(|(to, asked)| (to.clone(), count(asked)));
        counts.collect()
    }
}

async fn serve(stream: TcpStream, asked: &Mutex<BTreeMap<String, Vec<String>>>) {
    let (reader, mut writer) = stream.into_split();
    let Some((first, body)) = streams::read(reader).await else {
        return;
    };
    let target = first.split(' ').nth(1).unwrap().to_owned();
    let (status, text) = match serde_json::from_slice::<Value>(&body) {
        Ok(message) => {
            let method = message["method"].as_str().unwrap_or_default();
            let mut asked = asked.lock().unwrap();
            let to = asked.entry(target.clone()).or_default();
            to.push(method.to_owned());
            match reply(method, &target) {
                _ if message.get("id").is_none() => ("202 Accepted", String::new()),
                Some(result) => {
                    let reply = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
                    ("200 OK", reply.to_string())
                }
                None => ("404 Not Found", String::new()),
            }
        }
        Err(_) => ("405 Method Not Allowed", String::new()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    let _ = writer.write_all((head + &text).as_bytes()).await;
}

fn reply(method: &str, target: &str) -> Option<Value> {
    Some(match method {
        "initialize" => json!({
            "protocolVersion": "2025-06-18",
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "far", "version": "1" },
        }),
        "tools/list" => {
            json!({ "tools": [{ "name": "where", "inputSchema": { "type": "object" } }] })
        }
        "tools/call" => json!({ "content": [{ "type": "text", "text": target }] }),
        _ => return None,
    })
}

#[tokio::test]
async fn address_of_a_remote_server_names_the_project() {
    let far = Far::open().await;
    let url = format!("{}?repo=${{project.name}}", far.url);
    let rig = Rig::with(json!({ "s": { "url": url, "share": "project" } })).await;
    let dirs = TempDir::new().unwrap();
    let mut clients = Vec::new();
    for (name, target) in [("a b&c", "/mcp?repo=a%20b%26c"), ("x", "/mcp?repo=x")] {
        clients.push((open_in(&rig, &project(&dirs, name)).await, target));
    }
    for _ in 0..2 {
        for (client, target) in &mut clients {
            assert_eq!(text_of(&client.call("where", json!({})).await), *target);
        }
    }
    let targets = clients.iter().map(|(_, target)| (*target).to_owned());
    let each = |count| targets.clone().map(|to| (to, count)).collect::<Vec<_>>();
    assert_eq!(far.count("initialize"), each(1));
    assert_eq!(far.count("tools/call"), each(2));
    assert_eq!(instances(&rig).await.len(), 2);
    rig.stop().await;
}
