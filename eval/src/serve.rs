//! `switchboard-eval serve FILE`: a server over stdio that offers the tools in a file, and answers each call
//! with its arguments.

use serde_json::{Value, json};
use switchboard_wire::Raw;

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let file = arguments
        .first()
        .ok_or("usage: switchboard-eval serve FILE")?;
    let tools = std::fs::read(file).map_err(|error| format!("{file}: {error}"))?;
    let tools = Raw::parse(tools).map_err(|error| format!("{file}: {error}"))?;
    for line in std::io::stdin().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let message: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
        let (id, asked) = (&message["id"], &message["params"]);
        if id.is_null() {
            continue;
        }
        let result = match message["method"].as_str() {
            Some("initialize") => {
                let own = json!({"name": "eval", "version": "0"});
                let version = &asked["protocolVersion"];
                json!({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": own})
            }
            Some("tools/list") => {
                // Verbatim, as in the file.
                println!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":{tools}}}}}"#);
                continue;
            }
            Some("tools/call") => {
                json!({"content": [{"type": "text", "text": asked["arguments"].to_string()}]})
            }
            Some("ping") => json!({}),
            _ => {
                let error = json!({"code": -32601, "message": "unknown method"});
                println!("{}", json!({"jsonrpc": "2.0", "id": id, "error": error}));
                continue;
            }
        };
        println!("{}", json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }
    Ok(())
}
