//! The servers: how each is started, and a call that neither changes anything nor needs a network.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};
use switchboard_test_support::{Tools, left_out::Suite};

/// A server that `packages.txt` names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Server {
    pub(crate) name: &'static str,
    /// Its program, in the folder where it is installed.
    program: &'static str,
    /// `{work}` stands for a folder that is a git repository with one file.
    args: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
    /// A tool, and its arguments as JSON. If no tool works on its own, the arguments are invalid, and the
    /// error is compared.
    call: (&'static str, &'static str),
}

/// A server that is installed.
#[derive(Debug, Clone)]
pub(crate) struct Installed {
    server: Server,
    folder: PathBuf,
}

impl Installed {
    pub(crate) fn name(&self) -> &'static str {
        self.server.name
    }

    pub(crate) fn program(&self) -> PathBuf {
        self.folder.join(self.server.program)
    }

    pub(crate) fn args(&self, work: &str) -> Vec<String> {
        let args = self.server.args.iter();
        args.map(|arg| arg.replace("{work}", work)).collect()
    }

    pub(crate) fn env(&self, work: &str) -> Vec<(&'static str, String)> {
        let env = self.server.env.iter();
        env.map(|(name, value)| (*name, value.replace("{work}", work)))
            .collect()
    }

    /// The name of the tool that is called, and its arguments.
    pub(crate) fn call(&self, work: &str) -> (&'static str, Value) {
        let (tool, arguments) = self.server.call;
        let arguments = arguments.replace("{work}", work);
        (tool, serde_json::from_str(&arguments).unwrap())
    }

    /// Its entry in `mcpServers`.
    pub(crate) fn entry(&self, work: &str) -> Value {
        let env: Value = self.env(work).into_iter().collect();
        json!({ "command": self.program(), "args": self.args(work), "env": env })
    }
}

/// The server with this name; `None` if it is skipped.
pub(crate) fn installed(name: &str) -> Option<Installed> {
    let folder = folder()?;
    let server = SERVERS.iter().find(|server| server.name == name);
    let server = *server.unwrap_or_else(|| panic!("{name} is not in the table"));
    if let Some(why) = why_skipped(name) {
        eprintln!("skipped: {name}: {why}");
        return None;
    }
    let folder = folder.join(name);
    Some(Installed { server, folder })
}

/// The same for a server that no run may skip.
#[track_caller]
pub(crate) fn needed(name: &str) -> Option<Installed> {
    folder()?;
    let server = installed(name);
    assert!(server.is_some(), "this test needs {name}");
    server
}

/// All installed servers; `None` if the tests are skipped.
pub(crate) fn all_installed() -> Option<Vec<Installed>> {
    folder()?;
    let servers = SERVERS.iter();
    Some(
        servers
            .filter_map(|server| installed(server.name))
            .collect(),
    )
}

/// The names of all servers, in order.
pub(crate) fn names() -> Vec<&'static str> {
    SERVERS.iter().map(|server| server.name).collect()
}

/// The folder where the servers are installed; `None` if the tests are skipped.
fn folder() -> Option<PathBuf> {
    if !Suite::Servers.is_wanted() {
        return None;
    }
    Tools::need(&["node/bin/node", "servers"]).map(|tools| tools.path("servers"))
}

fn why_skipped(name: &str) -> Option<String> {
    let folder = folder()?;
    if folder.join(name).join(".stamp").exists() {
        return None;
    }
    let why = fs::read_to_string(folder.join(format!("{name}.skipped")));
    Some(why.map_or_else(
        |_| "it is not installed".to_owned(),
        |why| why.trim().to_owned(),
    ))
}

const SERVERS: &[Server] = &[
    Server {
        name: "alchemy",
        program: "bin/mcp-alchemy",
        args: &[],
        env: &[("DB_URL", "sqlite:///{work}/alchemy.db")],
        call: ("all_table_names", "{}"),
    },
    Server {
        name: "arxiv",
        program: "bin/arxiv-mcp-server",
        args: &["--storage-path", "{work}/papers"],
        env: &[],
        call: ("list_papers", "{}"),
    },
    Server {
        name: "atlassian",
        program: "bin/mcp-atlassian",
        args: &[],
        env: &[
            ("JIRA_URL", "http://127.0.0.1:9"),
            ("JIRA_USERNAME", "nobody"),
            ("JIRA_API_TOKEN", "none"),
            ("CONFLUENCE_URL", "http://127.0.0.1:9"),
            ("CONFLUENCE_USERNAME", "nobody"),
            ("CONFLUENCE_API_TOKEN", "none"),
        ],
        call: ("jira_get_issue", "{}"),
    },
    Server {
        name: "awsdocs",
        program: "bin/awslabs.aws-documentation-mcp-server",
        args: &[],
        env: &[],
        call: ("read_documentation", r#"{ "url": "http://127.0.0.1/x" }"#),
    },
    Server {
        name: "blender",
        program: "bin/blender-mcp",
        args: &[],
        env: &[("DISABLE_TELEMETRY", "true")],
        call: ("execute_blender_code", "{}"),
    },
    Server {
        name: "calculator",
        program: "bin/mcp-server-calculator",
        args: &[],
        env: &[],
        call: ("calculate", r#"{ "expression": "2 * 21" }"#),
    },
    Server {
        name: "chart",
        program: "node_modules/.bin/mcp-server-chart",
        args: &[],
        env: &[],
        call: ("generate_pie_chart", "{}"),
    },
    Server {
        name: "chrome-devtools",
        program: "node_modules/.bin/chrome-devtools-mcp",
        args: &["--no-usage-statistics"],
        env: &[],
        call: ("click", "{}"),
    },
    Server {
        name: "clickhouse",
        program: "bin/mcp-clickhouse",
        args: &[],
        env: &[
            ("CLICKHOUSE_HOST", "127.0.0.1"),
            ("CLICKHOUSE_USER", "nobody"),
            ("CLICKHOUSE_PASSWORD", "none"),
        ],
        call: ("list_tables", "{}"),
    },
    Server {
        name: "context7",
        program: "node_modules/.bin/context7-mcp",
        args: &[],
        env: &[],
        call: ("resolve-library-id", "{}"),
    },
    Server {
        name: "duckduckgo",
        program: "bin/duckduckgo-mcp-server",
        args: &[],
        env: &[],
        call: ("search", "{}"),
    },
    Server {
        name: "dynamodb",
        program: "bin/awslabs.dynamodb-mcp-server",
        args: &[],
        env: &[],
        call: ("dynamodb_data_model_validation", "{}"),
    },
    Server {
        name: "elasticsearch",
        program: "node_modules/.bin/mcp-server-elasticsearch",
        args: &[],
        env: &[
            ("ES_URL", "http://127.0.0.1:9"),
            ("ES_API_KEY", "none"),
            ("OTEL_SDK_DISABLED", "true"),
        ],
        call: ("get_mappings", "{}"),
    },
    Server {
        name: "everything",
        program: "node_modules/.bin/mcp-server-everything",
        args: &[],
        env: &[],
        call: ("echo", r#"{ "message": "hello" }"#),
    },
    Server {
        name: "excel",
        program: "bin/excel-mcp-server",
        args: &["stdio"],
        env: &[],
        call: ("read_range", "{}"),
    },
    Server {
        name: "fetch",
        program: "bin/mcp-server-fetch",
        args: &[],
        env: &[],
        call: ("fetch", r#"{ "url": "http://127.0.0.1:9/" }"#),
    },
    Server {
        name: "figma",
        program: "node_modules/.bin/figma-developer-mcp",
        args: &["--stdio"],
        env: &[("FIGMA_API_KEY", "none"), ("DO_NOT_TRACK", "1")],
        call: ("get_figma_data", "{}"),
    },
    Server {
        name: "filesystem",
        program: "node_modules/.bin/mcp-server-filesystem",
        args: &["{work}"],
        env: &[],
        call: ("read_text_file", r#"{ "path": "{work}/notes.txt" }"#),
    },
    Server {
        name: "git",
        program: "bin/mcp-server-git",
        args: &[],
        env: &[],
        call: ("git_status", r#"{ "repo_path": "{work}" }"#),
    },
    Server {
        name: "gitlab",
        program: "node_modules/.bin/mcp-server-gitlab",
        args: &[],
        env: &[
            ("GITLAB_PERSONAL_ACCESS_TOKEN", "none"),
            ("GITLAB_API_URL", "http://127.0.0.1:9"),
        ],
        call: ("get_file_contents", "{}"),
    },
    Server {
        name: "jupyter",
        program: "bin/jupyter-mcp-server",
        args: &["--start-new-code-sandbox", "false"],
        env: &[],
        call: ("use_notebook", "{}"),
    },
    Server {
        name: "kubectl",
        program: "node_modules/.bin/mcp-server-kubernetes",
        args: &[],
        env: &[("KUBECONFIG", "{work}/kubeconfig")],
        call: ("kubectl_get", "{}"),
    },
    Server {
        name: "kubernetes",
        program: "node_modules/.bin/kubernetes-mcp-server",
        args: &[],
        env: &[("KUBECONFIG", "{work}/kubeconfig")],
        call: ("configuration_view", "{}"),
    },
    Server {
        name: "markitdown",
        program: "bin/markitdown-mcp",
        args: &[],
        env: &[],
        call: (
            "convert_to_markdown",
            r#"{ "uri": "file://{work}/notes.txt" }"#,
        ),
    },
    Server {
        name: "memory",
        program: "node_modules/.bin/mcp-server-memory",
        args: &[],
        env: &[("MEMORY_FILE_PATH", "{work}/memory.json")],
        call: ("read_graph", "{}"),
    },
    Server {
        name: "mobile",
        program: "node_modules/.bin/mcp-server-mobile",
        args: &[],
        env: &[("MOBILEMCP_DISABLE_TELEMETRY", "1")],
        call: ("mobile_launch_app", "{}"),
    },
    Server {
        name: "mongodb",
        program: "node_modules/.bin/mongodb-mcp-server",
        args: &[],
        env: &[("MDB_MCP_TELEMETRY", "disabled")],
        call: ("list-databases", "{}"),
    },
    Server {
        name: "motherduck",
        program: "bin/mcp-server-motherduck",
        args: &["--db-path", ":memory:", "--read-write"],
        env: &[],
        call: ("execute_query", r#"{ "sql": "SELECT 42 AS answer" }"#),
    },
    Server {
        name: "n8n",
        program: "node_modules/.bin/n8n-mcp",
        args: &[],
        env: &[
            ("MCP_MODE", "stdio"),
            ("LOG_LEVEL", "error"),
            ("DISABLE_CONSOLE_OUTPUT", "true"),
            ("N8N_MCP_TELEMETRY_DISABLED", "true"),
        ],
        call: ("tools_documentation", "{}"),
    },
    Server {
        name: "obsidian",
        program: "bin/mcp-obsidian",
        args: &[],
        env: &[("OBSIDIAN_API_KEY", "none")],
        call: ("obsidian_get_file_contents", "{}"),
    },
    Server {
        name: "playwright",
        program: "node_modules/.bin/playwright-mcp",
        args: &["--headless", "--executable-path", "{work}/none"],
        env: &[],
        call: ("browser_close", "{}"),
    },
    Server {
        name: "redis",
        program: "bin/redis-mcp-server",
        args: &["--url", "redis://127.0.0.1:9/0"],
        env: &[],
        call: ("get", "{}"),
    },
    Server {
        name: "sequential-thinking",
        program: "node_modules/.bin/mcp-server-sequential-thinking",
        args: &[],
        env: &[],
        call: ("sequentialthinking", "{}"),
    },
    Server {
        name: "sqlite",
        program: "bin/mcp-server-sqlite",
        args: &["--db-path", "{work}/sqlite.db"],
        env: &[],
        call: ("read_query", r#"{ "query": "SELECT 42 AS answer" }"#),
    },
    Server {
        name: "time",
        program: "bin/mcp-server-time",
        args: &["--local-timezone", "UTC"],
        env: &[],
        call: ("get_current_time", r#"{ "timezone": "Nowhere" }"#),
    },
    Server {
        name: "wikipedia",
        program: "bin/wikipedia-mcp",
        args: &[],
        env: &[],
        call: ("get_summary", "{}"),
    },
    Server {
        name: "word",
        program: "bin/word_mcp_server",
        args: &[],
        env: &[],
        call: ("list_available_documents", r#"{ "directory": "{work}" }"#),
    },
];

#[test]
fn every_package_is_in_the_table() {
    let packages = include_str!("packages.txt").lines();
    let packages = packages.filter(|line| !line.starts_with('#'));
    let packages: Vec<_> = packages
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(packages, names());
}
