//! Commands that change the configuration: servers, secrets, tokens and clients, without a gateway and with one.

use super::{golden::Book, stage::Stage};

pub(super) const FILES: &[&str] = &[
    "add", "auth", "connect", "disable", "enable", "import", "login", "logout", "remove",
    "restart", "secret", "token",
];

super::at_both_widths!();

const CURSOR: &str = r#"{
  "mcpServers": {
    "files": { "command": "no-such-program", "args": ["-y", "files"], "autoApprove": [] },
    "issues": { "url": "https://mcp.example.com/mcp", "headers": { "Authorization": "Bearer abcdef0123456789abcdef0123456789" } },
    "echo": { "command": "other" }
  }
}
"#;

const CONFIG: &str = r#"{
  "listen": "127.0.0.1:0",
  "memory": { "enabled": false }
}
"#;

fn record(book: &mut Book) {
    book.scene("no gateway");
    let stage = Stage::new(book.columns);
    stage.write_config(CONFIG);
    empty(book, &stage);
    servers(book, &stage);
    secrets(book, &stage);
    import(book, &stage);
    connect(book, &stage);

    book.scene("a gateway runs");
    let stage = Stage::new(book.columns);
    stage.write_config(CONFIG);
    let _gateway = stage.gateway();
    servers(book, &stage);
    sign_in(book, &stage);
    import(book, &stage);
}

/// The providers of real sign-ins choose their addresses, so there is none here.
fn sign_in(book: &mut Book, stage: &Stage) {
    for command in ["login", "logout"] {
        let file = *FILES.iter().find(|file| **file == command).unwrap();
        let lines: [&[&str]; 3] = [&[command], &[command, "nothing"], &[command, "echo"]];
        book.run(file, stage, &lines);
    }
    book.run("auth", stage, &[&["auth"], &["auth", "list"]]);
}

/// There is nothing to change, or the usage is wrong.
fn empty(book: &mut Book, stage: &Stage) {
    book.run(
        "add",
        stage,
        &[
            &["add"],
            &["add", "files"],
            &["add", "files", "npx"],
            &["add", "bad name", "--", "npx"],
            &["add", "files", "https://example.com/mcp", "--", "npx"],
            &["add", "files", "--env", "KEY", "--", "npx"],
        ],
    );
    for command in ["remove", "enable", "disable", "restart"] {
        let file = *FILES.iter().find(|file| **file == command).unwrap();
        book.run(file, stage, &[&[command], &[command, "nothing"]]);
    }
    book.run(
        "secret",
        stage,
        &[
            &["secret"],
            &["secret", "list"],
            &["secret", "rm", "nothing"],
            &["secret", "set"],
            &["secret", "set", "bad/name"],
        ],
    );
    book.run(
        "token",
        stage,
        &[
            &["token"],
            &["token", "list"],
            &["token", "create", "ci"],
            &["token", "create", "ci"],
            &["token", "create", "bad name"],
            &["token", "create", "x", "--server", "nothing"],
            &["token", "create", "x", "--right", "root"],
            &["token", "list"],
            &["token", "rotate", "ci"],
            &["token", "revoke", "ci"],
            &["token", "revoke", "ci"],
        ],
    );
    book.run(
        "import",
        stage,
        &[
            &["import"],
            &["import", "--dry-run"],
            &["import", "--undo"],
            &["import", "nothing.json"],
            &["import", "netscape"],
            &["import", "--yes", "--undo", "--dry-run"],
        ],
    );
    book.run(
        "connect",
        stage,
        &[
            &["connect"],
            &["connect", "netscape"],
            &["connect", "cursor", "--undo"],
            &["connect", "--yes"],
        ],
    );
}

/// The life cycle of servers.
fn servers(book: &mut Book, stage: &Stage) {
    let [command, args @ ..] = stage.place.echo();
    let echo: Vec<&str> = [
        &["add", "echo", "--", &command][..],
        &args.each_ref().map(String::as_str),
    ]
    .concat();
    let token = "GITHUB_TOKEN=ghp_0123456789abcdefghijklmnopqrstuvwxyz";
    book.run(
        "add",
        stage,
        &[
            &echo,
            &echo,
            &["add", "missing", "--", "no-such-program", "--root", "/data"],
            &["add", "later", "--disabled", "--", "no-such-program"],
            &[
                "add",
                "plain",
                "http://mcp.example.com/mcp",
                "--header",
                "Authorization=Bearer ${secret:plain}",
                "--no-wait",
            ],
            &[
                "add",
                "browser",
                "--disabled",
                "--",
                "npx",
                "-y",
                "@playwright/mcp@latest",
            ],
            &["add", "git", "--disabled", "--", "git-mcp", "${project}"],
            &["add", "typo", "--disabled", "--", "git-mcp", "${projct}"],
        ],
    );
    let keyed = [
        "add",
        "keyed",
        "--env",
        token,
        "--disabled",
        "--",
        "npx",
        "-y",
        "server",
    ];
    book.converse("add", stage, &keyed, &[("[Y/n] ", "\n")]);
    book.run(
        "disable",
        stage,
        &[
            &["disable", "echo"],
            &["disable", "echo"],
            &["disable", "ehco"],
            &["disable", "memory"],
        ],
    );
    book.run(
        "enable",
        stage,
        &[
            &["enable", "echo"],
            &["enable", "echo"],
            &["enable", "later"],
            &["enable", "later", "--no-wait"],
            &["enable", "ehco"],
        ],
    );
    book.run(
        "restart",
        stage,
        &[
            &["restart", "echo"],
            &["restart", "missing"],
            &["restart", "echo", "--no-wait"],
            &["restart", "ehco"],
            &["restart", "echo/x"],
            &["restart", "echo/99"],
        ],
    );
    book.run(
        "remove",
        stage,
        &[
            &["remove", "missing"],
            &["remove", "missing"],
            &["remove", "ehco"],
            &["remove", "memory"],
        ],
    );
}

fn secrets(book: &mut Book, stage: &Stage) {
    let set = [
        "secret",
        "set",
        "a-secret-with-a-rather-long-name-for-the-warehouse",
    ];
    book.converse("secret", stage, &set, &[(": ", "one\n")]);
    book.converse("secret", stage, &set, &[(": ", "two\n")]);
    book.run(
        "secret",
        stage,
        &[
            &["secret", "list"],
            &["secret", "rm", "keyed-github_token"],
            &["secret", "rm", "keyed-github_token", "--force"],
            &["secret", "list"],
        ],
    );
}

fn import(book: &mut Book, stage: &Stage) {
    stage.place.write("user/.cursor/mcp.json", CURSOR);
    let import = ["import", "cursor", "--secrets", "move"];
    book.run("import", stage, &[&["import", "cursor", "--dry-run"]]);
    book.converse("import", stage, &import, &[("[y/N] ", "n\n")]);
    let wait = ["import", "cursor", "--secrets", "move", "--no-wait"];
    book.converse("import", stage, &wait, &[("[y/N] ", "y\n")]);
    book.run(
        "import",
        stage,
        &[
            &["import", "cursor"],
            &["import", "--undo"],
            &["import", "--undo"],
        ],
    );
}

fn connect(book: &mut Book, stage: &Stage) {
    book.run("connect", stage, &[&["connect", "cursor", "--dry-run"]]);
    let connect = ["connect", "cursor"];
    book.converse("connect", stage, &connect, &[("[y/N] ", "n\n")]);
    book.converse("connect", stage, &connect, &[("[y/N] ", "y\n")]);
    book.run(
        "connect",
        stage,
        &[
            &connect,
            &["connect"],
            &["connect", "cursor", "--undo"],
            &["connect", "cursor", "--undo"],
            &["import", "cursor", "--yes", "--no-wait"],
            &["connect", "cursor", "--move", "--yes"],
            &["connect", "cursor", "--move"],
            &["connect", "--all"],
            &["connect", "--all", "--undo"],
            &["connect", "--all", "--dry-run"],
        ],
    );
    stage.place.write("user/.cursor/mcp.json", "{ nonsense");
    book.run("connect", stage, &[&connect, &["connect"]]);
}
