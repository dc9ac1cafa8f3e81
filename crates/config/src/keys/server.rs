//! The keys of an entry of `mcpServers`, including those of other programs.

use super::{MS, RESULT_BYTES, RESULT_TOKENS, bare, key};
use crate::shape::{Key, Keys, Shape};

/// The highest limit for calls in flight, and for calls in the queue.
const CALLS_MAX: u64 = 65_536;

/// The protocol revisions.
const REVISIONS: &[&str] = &[
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
];

/// A key of other programs that has no effect here.
const fn ignored(name: &'static str) -> Key {
    bare(
        name,
        Shape::Anything,
        "Accepted from other programs' files and ignored.",
    )
}

pub(crate) const SERVER: Keys = Keys {
    all: &[
        bare(
            "command",
            Shape::Text,
            "The program to start, for a server on this machine. A relative path counts from cwd, or from the \
             directory of this file.",
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
        key(
            "inheritEnv",
            Shape::Either(&Shape::Texts, &Shape::Flag),
            "[]",
            "Variables that the program gets from the gateway's environment, by name, beyond the usual ones \
             (PATH, HOME, language, proxies, certificates, package managers); true is all of them. \"env\" wins.",
        ),
        bare(
            "cwd",
            Shape::Text,
            "The directory that the program runs in, relative to the directory of this file. Unless given it has one \
             of its own in the gateway's home, which is empty at first and after a change of the command line.",
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
        key(
            "hold",
            Shape::Flag,
            "false",
            "Whether the server is not started until a person agrees, as with `switchboard trust approve`. \
             A server that is added over HTTP is held.",
        ),
        bare(
            "approvedFile",
            Shape::Text,
            "The file that the command or the engine led to when a person agreed to the start; empty if there was \
             none. If it leads to another one, the server is held again. Written by the gateway.",
        ),
        bare(
            "revision",
            Shape::Choice(REVISIONS),
            "The newest protocol revision to speak with the server. Unless given, a server that speaks both 2026-07-28 \
             and older ones is spoken to as each client speaks; 2026-07-28 means that revision alone.",
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
        key(
            "trust",
            Shape::Either(&Shape::Choice(&["first", "ask", "always"]), &Shape::Flag),
            r#""first""#,
            "Whether its tools are shown: \"first\" as they are when first seen, a changed one when it is \
             approved; \"ask\" none before it is approved; \"always\" all, also changed ones. true and false \
             are another program's, and mean nothing here.",
        ),
        bare(
            "maxResultBytes",
            RESULT_BYTES,
            "A result of it with more bytes is cut; `read_result` reads on.",
        ),
        bare(
            "maxResultTokens",
            RESULT_TOKENS,
            "A result of it of more tokens, by estimate, is cut.",
        ),
        bare(
            "tools",
            Shape::Either(&Shape::Object(&TOOLS), &Shape::Texts),
            "Which tools are shown, by name with * for any characters. A list means allow.",
        ),
        bare(
            "approve",
            Shape::Choice(&["never", "destructive", "writes", "all"]),
            "Which calls of its tools are asked about where no rule says otherwise, if other than \"tools\" \
             of \"approvals\" says: none, those of tools that may destroy, those that may change anything, \
             or all.",
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
        ("envPass", "inheritEnv"),
        ("env_vars", "inheritEnv"),
        ("passEnv", "inheritEnv"),
        ("workingDirectory", "cwd"),
        ("workingDir", "cwd"),
        ("workdir", "cwd"),
        ("endpoint", "url"),
        ("uri", "url"),
        ("address", "url"),
        ("httpHeaders", "headers"),
        ("protocol", "type"),
        ("kind", "type"),
        ("container", "image"),
        ("docker", "image"),
        ("active", "enabled"),
        ("autoStart", "start"),
        ("startOnLaunch", "start"),
        ("lazy", "start"),
        ("idleTimeout", "idleStopSeconds"),
        ("timeoutMs", "requestTimeoutMs"),
        ("startupTimeout", "initTimeoutMs"),
        ("startupTimeoutSec", "initTimeoutMs"),
        ("connectTimeout", "initTimeoutMs"),
        ("concurrency", "maxInFlight"),
        ("maxConcurrency", "maxInFlight"),
        ("allowedTools", "tools"),
        ("enabledTools", "tools"),
    ],
    one_of: &[WAYS],
};

/// The keys that set how a server is reached.
pub(crate) const WAYS: &[&str] = &["command", "url", "serverUrl", "httpUrl", "image"];

/// Values of `type` that programs write. Cline, Roo and VS Code spell Streamable HTTP differently.
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
        key(
            "network",
            Shape::Either(&Shape::Flag, &Shape::Text),
            "false",
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
        ("cpu", "cpus"),
        ("mem", "memory"),
    ],
    one_of: &[],
};
