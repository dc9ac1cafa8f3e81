//! Every key of `switchboard.json`, what it may hold and what it means.

use crate::shape::{Key, Keys, Shape};

/// The longest time that can be given, a day: what waits longer has been forgotten.
const MS: Shape = Shape::Whole {
    min: 1,
    max: 24 * 60 * 60 * 1000,
};

/// The most calls at a time, or waiting, that can be given.
const CALLS_MAX: u64 = 65_536;

const fn key(name: &'static str, shape: Shape, default: &'static str, about: &'static str) -> Key {
    Key {
        name,
        shape,
        default: Some(default),
        about,
    }
}

/// A key without a default.
const fn bare(name: &'static str, shape: Shape, about: &'static str) -> Key {
    Key {
        name,
        shape,
        default: None,
        about,
    }
}

/// A key of other programs' files that changes nothing here.
const fn ignored(name: &'static str) -> Key {
    bare(
        name,
        Shape::Anything,
        "Accepted from other programs' files and ignored.",
    )
}

pub(crate) const ROOT: Keys = Keys {
    all: &[
        bare(
            "$schema",
            Shape::Text,
            "The address of this schema, for editors.",
        ),
        key(
            "listen",
            Shape::Text,
            r#""127.0.0.1:7777""#,
            "The address of the gateway, HOST:PORT on this machine; port 0 takes any free one.",
        ),
        key(
            "view",
            Shape::Choice(&["auto", "search", "direct"]),
            r#""auto""#,
            "What /mcp and stdio show: \"search\" is a small menu to find tools with, \"direct\" every \
             tool of every server, \"auto\" direct while there are few and else search.",
        ),
        key(
            "mcpServers",
            Shape::Servers(&SERVER),
            "{}",
            "The servers behind the gateway, by name. A name has 1 to 64 characters.",
        ),
        key(
            "waitTimeoutMs",
            MS,
            "5000",
            "How long a call waits for a part of the gateway that is still starting, in milliseconds.",
        ),
        bare("approvals", Shape::Object(&APPROVALS), "Asking a human."),
        bare(
            "sampling",
            Shape::Object(&SAMPLING),
            "Generating for servers that ask for a model's answer.",
        ),
        bare("memory", Shape::Object(&MEMORY), "The built-in memory."),
        bare("search", Shape::Object(&SEARCH), "Finding tools."),
        bare("auth", Shape::Object(&AUTH), "Who may come in."),
        bare(
            "shutdown",
            Shape::Object(&SHUTDOWN),
            "How long the way down may take.",
        ),
    ],
    meant: &[
        ("servers", "mcpServers"),
        ("mcp", "mcpServers"),
        ("context_servers", "mcpServers"),
        ("port", "listen"),
        ("host", "listen"),
        ("bind", "listen"),
        ("address", "listen"),
        ("timeout", "waitTimeoutMs"),
    ],
    one_of: &[],
};

pub(crate) const SERVER: Keys = Keys {
    all: &[
        bare(
            "command",
            Shape::Text,
            "The program to start, for a server on this machine.",
        ),
        bare(
            "image",
            Shape::Text,
            "The image to run, for a server in a container.",
        ),
        key(
            "args",
            Shape::Texts,
            "[]",
            "Arguments for the program, or for the one in the image.",
        ),
        key(
            "env",
            Shape::TextMap,
            "{}",
            "Variables for the program, or for the container.",
        ),
        bare(
            "cwd",
            Shape::Text,
            "The folder the program runs in; the gateway's own unless given.",
        ),
        bare(
            "url",
            Shape::Text,
            "The address of a server elsewhere, http:// or https://.",
        ),
        key(
            "headers",
            Shape::TextMap,
            "{}",
            "Headers for every request to the address.",
        ),
        bare(
            "type",
            Shape::Choice(TYPES),
            "How the server is spoken to. Mostly superfluous: \"stdio\" and \"local\" go with command and \
             image; \"http\", \"streamable-http\" and \"remote\" with url, where they mean Streamable HTTP \
             and HTTP+SSE if that is refused; \"http-only\" does not fall back; \"sse\" is HTTP+SSE.",
        ),
        bare("transport", Shape::Choice(TYPES), "Another name of type."),
        bare(
            "isolation",
            Shape::Object(&ISOLATION),
            "How the container is run; goes with image.",
        ),
        key(
            "enabled",
            Shape::Flag,
            "true",
            "Whether the gateway uses the server.",
        ),
        bare(
            "start",
            Shape::Choice(&["lazy", "eager"]),
            "Whether the server is started when it is first needed or with the gateway. The gateway \
             chooses unless this is given.",
        ),
        key(
            "idleStopSeconds",
            Shape::Whole {
                min: 0,
                max: 365 * 24 * 60 * 60,
            },
            "600",
            "How long the server may do nothing before it is stopped, in seconds; 0 is for ever.",
        ),
        key(
            "requestTimeoutMs",
            MS,
            "60000",
            "How long an answer may take, in milliseconds.",
        ),
        key(
            "initTimeoutMs",
            MS,
            "30000",
            "How long it may take to get ready, in milliseconds.",
        ),
        key(
            "closeTimeoutMs",
            MS,
            "10000",
            "How long it may take to leave after its input was closed, in milliseconds.",
        ),
        key(
            "termTimeoutMs",
            MS,
            "9000",
            "How long it may take to leave after it was asked by signal, in milliseconds.",
        ),
        key(
            "maxInFlight",
            Shape::Whole {
                min: 1,
                max: CALLS_MAX,
            },
            "64",
            "How many calls the server is given at a time.",
        ),
        key(
            "maxQueued",
            Shape::Whole {
                min: 0,
                max: CALLS_MAX,
            },
            "256",
            "How many calls may wait for their turn.",
        ),
        bare(
            "tools",
            Shape::Either(&Shape::Object(&TOOLS), &Shape::Texts),
            "Which tools are shown, by name with * for any characters. A list means allow.",
        ),
        bare(
            "approve",
            Shape::Anything,
            "What needs a person's approval.",
        ),
        bare("serverUrl", Shape::Text, "Another name of url."),
        bare("httpUrl", Shape::Text, "Another name of url."),
        bare("disabled", Shape::Flag, "The opposite of enabled."),
        bare(
            "timeout",
            Shape::Whole {
                min: 1,
                max: 24 * 60 * 60 * 1000,
            },
            "Another name of requestTimeoutMs, which wins. Programs disagree about the unit: below 1000 \
             these are seconds, above 3600 milliseconds, and between the two the value is refused.",
        ),
        bare(
            "includeTools",
            Shape::Texts,
            "Another name of allow in tools.",
        ),
        bare(
            "excludeTools",
            Shape::Texts,
            "Another name of deny in tools.",
        ),
        bare(
            "disabledTools",
            Shape::Texts,
            "Another name of deny in tools.",
        ),
        ignored("autoApprove"),
        ignored("alwaysAllow"),
        ignored("trust"),
        ignored("description"),
        ignored("name"),
        ignored("icon"),
        ignored("gallery"),
        ignored("version"),
    ],
    meant: &[
        ("cmd", "command"),
        ("executable", "command"),
        ("program", "command"),
        ("arguments", "args"),
        ("environment", "env"),
        ("envFile", "env"),
        ("workingDirectory", "cwd"),
        ("working_dir", "cwd"),
        ("workdir", "cwd"),
        ("endpoint", "url"),
        ("uri", "url"),
        ("address", "url"),
        ("httpHeaders", "headers"),
        ("http_headers", "headers"),
        ("protocol", "type"),
        ("kind", "type"),
        ("container", "image"),
        ("docker", "image"),
        ("active", "enabled"),
        ("autoStart", "start"),
        ("lazy", "start"),
        ("idleTimeout", "idleStopSeconds"),
        ("timeoutMs", "requestTimeoutMs"),
        ("startupTimeout", "initTimeoutMs"),
        ("startup_timeout_sec", "initTimeoutMs"),
        ("connectTimeout", "initTimeoutMs"),
        ("concurrency", "maxInFlight"),
        ("maxConcurrency", "maxInFlight"),
        ("allowedTools", "tools"),
        ("enabledTools", "tools"),
        ("enabled_tools", "tools"),
        ("disabled_tools", "tools"),
    ],
    one_of: &[WAYS],
};

/// The keys that say how a server is reached.
pub(crate) const WAYS: &[&str] = &["command", "url", "serverUrl", "httpUrl", "image"];

/// What programs write for `type`; Cline, Roo and VS Code each spell Streamable HTTP their way.
const TYPES: &[&str] = &[
    "stdio",
    "local",
    "http",
    "streamable-http",
    "streamableHttp",
    "streamable_http",
    "remote",
    "http-only",
    "sse",
];

const TOOLS: Keys = Keys {
    all: &[
        bare(
            "allow",
            Shape::Texts,
            "Only these are shown; all unless given.",
        ),
        key(
            "deny",
            Shape::Texts,
            "[]",
            "These are not shown, whatever allow says.",
        ),
    ],
    meant: &[
        ("include", "allow"),
        ("only", "allow"),
        ("exclude", "deny"),
        ("block", "deny"),
    ],
    one_of: &[],
};

const ISOLATION: Keys = Keys {
    all: &[
        bare(
            "engine",
            Shape::Either(&Shape::Text, &Shape::Texts),
            "The engine's program, or a list of it and its leading arguments; found by itself unless given.",
        ),
        bare(
            "network",
            Shape::Either(&Shape::Flag, &Shape::Text),
            "The network to join by name; false is none, true the engine's default.",
        ),
        bare(
            "memory",
            Shape::Text,
            "The memory limit as the engine spells it, such as \"512m\".",
        ),
        bare(
            "cpus",
            Shape::Either(&Shape::Amount, &Shape::Text),
            "How many CPUs it may use, such as 1.5.",
        ),
        bare(
            "pids",
            Shape::Whole {
                min: 1,
                max: 4_194_304,
            },
            "How many processes it may have.",
        ),
        key(
            "mounts",
            Shape::Texts,
            "[]",
            "Mounts, each \"SOURCE:TARGET\" or \"SOURCE:TARGET:ro\".",
        ),
        key(
            "readOnly",
            Shape::Flag,
            "false",
            "Whether the image's own files are read-only.",
        ),
        key(
            "runArgs",
            Shape::Texts,
            "[]",
            "Further arguments for the engine's run command.",
        ),
    ],
    meant: &[
        ("runtime", "engine"),
        ("volumes", "mounts"),
        ("extraArgs", "runArgs"),
        ("extra_args", "runArgs"),
        ("cpu", "cpus"),
        ("mem", "memory"),
    ],
    one_of: &[],
};

const APPROVALS: Keys = Keys {
    all: &[
        key(
            "shortTimeoutMs",
            MS,
            "30000",
            "After how long a waiting request becomes louder, in milliseconds.",
        ),
        key(
            "longTimeoutMs",
            MS,
            "270000",
            "After how much longer it times out, in milliseconds.",
        ),
        key(
            "route",
            Shape::Choice(&["auto", "client", "human"]),
            r#""auto""#,
            "Who answers: the client, the person, or \"auto\": the client where it can.",
        ),
        key(
            "rules",
            Shape::Values,
            "[]",
            "What is allowed, asked about or denied.",
        ),
    ],
    meant: &[],
    one_of: &[],
};

const SAMPLING: Keys = Keys {
    all: &[
        bare(
            "provider",
            Shape::Object(&PROVIDER),
            "The model that generates.",
        ),
        key(
            "review",
            Shape::Flag,
            "false",
            "Whether a person sees the answer before the server does.",
        ),
    ],
    meant: &[],
    one_of: &[],
};

pub(crate) const PROVIDER: Keys = Keys {
    all: &[
        bare(
            "kind",
            Shape::Choice(&["openai", "anthropic"]),
            "The interface it speaks.",
        ),
        bare(
            "baseUrl",
            Shape::Text,
            "Where it is; the kind's own public address unless given.",
        ),
        bare("model", Shape::Text, "The model to ask for."),
        bare(
            "apiKey",
            Shape::Text,
            "The key to show, best as ${secret:NAME} or ${env:NAME}.",
        ),
    ],
    meant: &[("type", "kind"), ("url", "baseUrl"), ("key", "apiKey")],
    one_of: &[&["kind"], &["model"]],
};

const MEMORY: Keys = Keys {
    all: &[key(
        "enabled",
        Shape::Flag,
        "true",
        "Whether the built-in memory is offered.",
    )],
    meant: &[],
    one_of: &[],
};

const SEARCH: Keys = Keys {
    all: &[key(
        "embeddings",
        Shape::Text,
        r#""auto""#,
        "Which embeddings help to find tools by meaning.",
    )],
    meant: &[],
    one_of: &[],
};

const AUTH: Keys = Keys {
    all: &[key(
        "mcp",
        Shape::Choice(&["token", "none"]),
        r#""token""#,
        "What an MCP client has to show: the token from run/token, or nothing.",
    )],
    meant: &[],
    one_of: &[],
};

const SHUTDOWN: Keys = Keys {
    all: &[
        key(
            "totalTimeoutMs",
            MS,
            "45000",
            "For everything together, in milliseconds.",
        ),
        key(
            "containerTimeoutMs",
            MS,
            "30000",
            "For stopping and removing containers, in milliseconds.",
        ),
    ],
    meant: &[],
    one_of: &[],
};
