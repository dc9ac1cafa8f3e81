//! The gateway itself: started, used by a client, and stopped.

use super::{golden::Book, stage::Stage};

pub(super) const FILES: &[&str] = &["serve", "stdio", "stop"];

super::at_both_widths!();

/// End of input.
const CTRL_D: &str = "\u{4}";

fn record(book: &mut Book) {
    book.scene("no gateway");
    let stage = Stage::new(book.columns);
    stage.write_config(r#"{"listen": "127.0.0.1:0"}"#);
    book.run("stop", &stage, &[&["stop"], &["stop", "now"]]);
    let serve = ["serve", "--log-level", "warn"];
    let mut session = stage.start(&serve);
    session.wait_for("token");
    session.wait_for("\n");
    stage.succeed(&["status"]);
    session.terminate();
    let ended = stage.end(session);
    book.add("serve", &serve, &ended);
    book.run(
        "serve",
        &stage,
        &[
            &["serve", "--listen", "0.0.0.0:7777"],
            &["serve", "--listen", "9000"],
            &["serve", "--log-level", "loud"],
        ],
    );
    stdio(book, &stage);

    book.scene("a configuration with a mistake");
    stage.write_config("{\n  \"mcpServers\": {\n    \"files\": { \"comand\": \"npx\" }\n  }\n}\n");
    book.run("serve", &stage, &[&["serve"]]);
    book.run("stdio", &stage, &[&["stdio"]]);

    book.scene("a gateway runs");
    stage.write_config(r#"{"listen": "127.0.0.1:0"}"#);
    let _gateway = stage.gateway();
    book.run("serve", &stage, &[&["serve"]]);
    stdio(book, &stage);
    book.run("stop", &stage, &[&["stop"]]);
}

fn stdio(book: &mut Book, stage: &Stage) {
    speak(book, "stdio", stage, &["stdio"]);
    book.run(
        "stdio",
        stage,
        &[&["stdio", "--view", "sideways"], &["stdio", "extra"]],
    );
    speak(book, "stdio", stage, &["stdio", "--view", "server:nothing"]);
}

/// Runs a command that speaks MCP, until it has responded and its input ends.
pub(super) fn speak(book: &mut Book, file: &'static str, stage: &Stage, args: &[&str]) {
    let mut session = stage.start(args);
    // The terminal echoes typed text at once, even before the program prints anything.
    session.wait_for("Ctrl-D to quit\r\n");
    session.type_in("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
    // If the input ended earlier, that would race with the start.
    session.wait_for("\"result\"");
    session.type_in(CTRL_D);
    let ended = stage.end(session);
    book.add(file, args, &ended);
}
