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
    bare(name, Shape::Anything, "Ignored; other programs write it.")
}

pub(crate) const SERVER: Keys = Keys {
    all: &[
        bare(
            "command",
            Shape::Text,
            "The program to start, for a server on this machine. A relative path is relative to \
             `cwd`, or to the directory of this file if `cwd` is not set.",
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
            "The arguments of the program, or of the one in the image. Every user of the machine \
             can read them, so put secrets into `env` instead.",
        ),
        key(
            "env",
            Shape::TextMap,
            "{}",
            "The environment variables of the program or the container.",
        ),
        key(
            "inheritEnv",
            Shape::Either(&Shape::Texts, &Shape::Flag),
            "[]",
            "The names of additional variables that a program gets from the gateway's environment; \
             true passes all of them. By default, a program gets PATH, HOME and the variables of \
             the locale, language toolchains, proxies, certificates and package managers. `env` \
             takes precedence. Only with `command`.",
        ),
        bare(
            "cwd",
            Shape::Text,
            "The working directory of the program, relative to the directory of this file. By \
             default, it is servers/NAME.HASH in the gateway's home, which is empty at first; a \
             server with a changed command line gets a new one. Only with `command`.",
        ),
        bare(
            "url",
            Shape::Text,
            "The URL of a remote server, http:// or https://. It must not contain spaces, \
             backslashes or #.",
        ),
        key(
            "headers",
            Shape::TextMap,
            "{}",
            "The HTTP headers of every request to the server. Only with `url`.",
        ),
        bare(
            "oauth",
            Shape::Object(&OAUTH),
            "The sign-in with OAuth, for a server that `switchboard login NAME` cannot sign in to by \
             itself. Only with `url`, and without the header `Authorization`.",
        ),
        bare(
            "type",
            Shape::Choice(TYPES),
            "The transport; detected by default. \"stdio\" and \"local\" go with `command` and \
             `image`. \"http\", \"streamable-http\" and \"remote\" go with `url` and mean \
             Streamable HTTP, or HTTP+SSE if the server refuses it; \"http-only\" does not fall \
             back to HTTP+SSE, and \"sse\" uses only HTTP+SSE.",
        ),
        bare("transport", Shape::Choice(TYPES), "An alias of `type`."),
        bare(
            "isolation",
            Shape::Object(&ISOLATION),
            "The settings of the container. Only with `image`.",
        ),
        key(
            "enabled",
            Shape::Flag,
            "true",
            "If false, the gateway does not use the server.",
        ),
        key(
            "hold",
            Shape::Flag,
            "false",
            "If true, the gateway does not start the server until you approve it, with \
             `switchboard trust approve` or in the console. A server that is added over HTTP is \
             held.",
        ),
        bare(
            "approvedFile",
            Shape::Text,
            "The file that `command` or the container engine resolved to when you approved the \
             start; empty if there was none. If it resolves to another file, the server is held \
             again. The gateway writes this key.",
        ),
        bare(
            "revision",
            Shape::Choice(REVISIONS),
            "The newest protocol revision to use with the server; 2026-07-28 means only that \
             revision. By default, a server that supports 2026-07-28 and an older revision is \
             called in the revision of each client.",
        ),
        key(
            "share",
            Shape::Choice(&["auto", "all", "project", "client"]),
            r#""auto""#,
            "The callers that share an instance of the server: \"all\": all of them; \"project\": the \
             clients that work in one directory; \"client\": none, each client has its own; \
             \"auto\": \"client\" if the entry contains ${client}, \"project\" if it contains \
             ${project} or ${project.name}, \"client\" for well-known servers that keep state for \
             each conversation, such as browsers, and for servers that have asked a client something \
             over a pipe, and \"all\" for others.",
        ),
        key(
            "maxInstances",
            Shape::Whole { min: 1, max: 256 },
            "8",
            "The maximum number of instances of the server at the same time, unless all callers \
             share one. Beyond that, the one that has been idle longest is stopped; if none is \
             idle, the call fails.",
        ),
        bare(
            "start",
            Shape::Choice(&["lazy", "eager"]),
            "When the server starts: \"lazy\": on first use; \"eager\": with the gateway. By \
             default, lazy. A server whose tools are not known yet is started once to list them.",
        ),
        key(
            "idleStopSeconds",
            Shape::Whole {
                min: 0,
                max: 365 * 24 * 60 * 60,
            },
            "600",
            "The time, in seconds, without calls after which the gateway stops a lazy server; 0 \
             means never.",
        ),
        key(
            "requestTimeoutMs",
            MS,
            "60000",
            "The time limit for a response from the server, in milliseconds. Each progress \
             notification restarts it, up to 10 times the limit in total.",
        ),
        key(
            "initTimeoutMs",
            MS,
            "30000",
            "The time limit, in milliseconds, from the start of the server to the end of its \
             handshake.",
        ),
        key(
            "closeTimeoutMs",
            MS,
            "10000",
            "The time, in milliseconds, that the server has to exit after the gateway closes its \
             standard input, and at most 1000 if it has never responded. After that, it gets \
             SIGTERM.",
        ),
        key(
            "termTimeoutMs",
            MS,
            "9000",
            "The time, in milliseconds, that the server has to exit after SIGTERM. After that, it \
             gets SIGKILL.",
        ),
        key(
            "maxInFlight",
            Shape::Whole {
                min: 1,
                max: CALLS_MAX,
            },
            "64",
            "The maximum number of calls that the gateway sends to the server at the same time; more wait in a \
             queue.",
        ),
        key(
            "maxQueued",
            Shape::Whole {
                min: 0,
                max: CALLS_MAX,
            },
            "256",
            "The maximum number of calls that wait in the queue; more fail at once. Clients take turns.",
        ),
        key(
            "trust",
            Shape::Either(&Shape::Choice(&["first", "ask", "always"]), &Shape::Flag),
            r#""first""#,
            "The approval that the definitions of tools, prompts and resources need before agents \
             see them: \"first\": none when they are first seen, unless they look dangerous, and \
             approval of every change; \"ask\": approval of every definition; \"always\": none, not \
             even for changes. true and false, which other programs write, mean \"first\".",
        ),
        bare(
            "maxResultBytes",
            RESULT_BYTES,
            "The maximum length, in bytes, of a result of its tools that an agent receives at once; \
             `read_result` reads the rest. By default, `results.maxBytes`.",
        ),
        bare(
            "maxResultTokens",
            RESULT_TOKENS,
            "The maximum length, in estimated tokens, of a result of its tools that an agent receives at once; \
             `read_result` reads the rest. By default, `results.maxTokens`.",
        ),
        bare(
            "tools",
            Shape::Either(&Shape::Object(&TOOLS), &Shape::Texts),
            "The tools that clients see, by name; * matches any characters. A list is the same as \
             `allow`. By default, all tools.",
        ),
        bare(
            "overrides",
            Shape::Entries("override", &OVERRIDE),
            "Changes to the tools of the server, by the server's own names. Clients see and call a \
             tool only as it is changed. Patterns, in `tools` and elsewhere, match a tool by its \
             own name and by its new one.",
        ),
        bare(
            "approve",
            Shape::Choice(&["never", "destructive", "writes", "all"]),
            "The calls that need approval if no rule matches: \"never\": none; \"destructive\": \
             calls to tools that may destroy data; \"writes\": calls to tools that may change \
             data; \"all\": every call, including resources and prompts. By default, \
             `approvals.tools`.",
        ),
        bare("serverUrl", Shape::Text, "An alias of `url`."),
        bare("httpUrl", Shape::Text, "An alias of `url`."),
        bare("disabled", Shape::Flag, "The opposite of `enabled`."),
        bare(
            "timeout",
            Shape::Whole {
                min: 1,
                max: 24 * 60 * 60 * 1000,
            },
            "An alias of `requestTimeoutMs`, which takes precedence. Programs disagree about the \
             unit: a value below 1000 is in seconds, a value above 3600 is in milliseconds, and \
             the values between them are rejected.",
        ),
        bare("includeTools", Shape::Texts, "An alias of `tools.allow`."),
        bare("excludeTools", Shape::Texts, "An alias of `tools.deny`."),
        bare("disabledTools", Shape::Texts, "An alias of `tools.deny`."),
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
        ("shared", "share"),
        ("sharing", "share"),
        ("instances", "maxInstances"),
        ("idleTimeout", "idleStopSeconds"),
        ("timeoutMs", "requestTimeoutMs"),
        ("startupTimeout", "initTimeoutMs"),
        ("startupTimeoutSec", "initTimeoutMs"),
        ("connectTimeout", "initTimeoutMs"),
        ("concurrency", "maxInFlight"),
        ("maxConcurrency", "maxInFlight"),
        ("allowedTools", "tools"),
        ("enabledTools", "tools"),
        ("toolOverrides", "overrides"),
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
            "The names of the tools that clients see. By default, all tools.",
        ),
        key(
            "deny",
            Shape::Texts,
            "[]",
            "The names of the tools that clients do not see, even if `allow` lists them.",
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

const OVERRIDE: Keys = Keys {
    all: &[
        bare(
            "name",
            Shape::Text,
            "The new name of the tool: at most 64 letters, digits, `_`, `-` and `.`.",
        ),
        bare(
            "description",
            Shape::Text,
            "The description that clients see. By default, the server's.",
        ),
        bare(
            "annotations",
            Shape::Object(&ANNOTATIONS),
            "Annotations that replace the server's. Approvals believe them, unlike the server's, \
             even if the name of the tool contradicts them.",
        ),
        bare(
            "arguments",
            Shape::Entries("argument", &ARGUMENT),
            "Arguments that clients neither see nor set, by name. A call that sets one fails.",
        ),
        key(
            "hidden",
            Shape::Flag,
            "false",
            "If true, clients do not see the tool.",
        ),
    ],
    meant: &[
        ("rename", "name"),
        ("as", "name"),
        ("title", "annotations"),
        ("args", "arguments"),
        ("parameters", "arguments"),
        ("hide", "hidden"),
        ("disabled", "hidden"),
    ],
    one_of: &[],
};

const ANNOTATIONS: Keys = Keys {
    all: &[
        bare("title", Shape::Text, "The title for people."),
        bare("readOnlyHint", Shape::Flag, "The tool changes nothing."),
        bare(
            "destructiveHint",
            Shape::Flag,
            "The tool may destroy existing data.",
        ),
        bare(
            "idempotentHint",
            Shape::Flag,
            "A repeated call has no further effect.",
        ),
        bare(
            "openWorldHint",
            Shape::Flag,
            "The tool reaches beyond the server.",
        ),
    ],
    meant: &[
        ("readOnly", "readOnlyHint"),
        ("destructive", "destructiveHint"),
        ("idempotent", "idempotentHint"),
        ("openWorld", "openWorldHint"),
    ],
    one_of: &[],
};

const ARGUMENT: Keys = Keys {
    all: &[
        bare(
            "value",
            Shape::Anything,
            "The value in every call. It is sent as it is written; ${env:NAME} and ${secret:NAME} \
             are not replaced.",
        ),
        bare(
            "hidden",
            Shape::Flag,
            "true, if no call has the argument. An argument with a `value` is hidden, too.",
        ),
    ],
    meant: &[
        ("fixed", "value"),
        ("const", "value"),
        ("default", "value"),
        ("hide", "hidden"),
    ],
    one_of: &[],
};

const IDENTITY_PROVIDER: Keys = Keys {
    all: &[
        bare(
            "tokenUrl",
            Shape::Text,
            "The address of its token endpoint.",
        ),
        bare(
            "clientId",
            Shape::Text,
            "The ID of the gateway's client there.",
        ),
        bare(
            "clientSecret",
            Shape::Text,
            "The secret of that client, such as \"${secret:NAME}\". Public clients have none.",
        ),
        bare(
            "idTokenFile",
            Shape::Text,
            "The file with your ID token. It is read at each use.",
        ),
    ],
    meant: &[
        ("tokenEndpoint", "tokenUrl"),
        ("id", "clientId"),
        ("secret", "clientSecret"),
        ("idToken", "idTokenFile"),
    ],
    one_of: &[],
};

const OAUTH: Keys = Keys {
    all: &[
        bare(
            "clientId",
            Shape::Text,
            "The ID of a client that you have registered with the provider. By default, the gateway \
             registers itself.",
        ),
        bare(
            "clientSecret",
            Shape::Text,
            "The secret of the registered client, such as \"${secret:NAME}\". Public clients have \
             none.",
        ),
        bare(
            "privateKey",
            Shape::Text,
            "The private key of the registered client in place of a secret (`private_key_jwt`), such as \
             \"${secret:NAME}\": RSA, or on the curve P-256, in PEM (PKCS#8).",
        ),
        bare(
            "keyId",
            Shape::Text,
            "The ID of that key, where the provider asks for it.",
        ),
        bare(
            "issuer",
            Shape::Text,
            "The authorization server of the registered client: its secret is sent to no other. By \
             default, the first one that the server names.",
        ),
        bare(
            "clientMetadataUrl",
            Shape::Text,
            "The https:// URL of a client ID metadata document, which replaces the registration where \
             the authorization server supports it.",
        ),
        bare(
            "redirectUri",
            Shape::Text,
            "The redirect URI of the registered client. By default, http://127.0.0.1/callback with a \
             free port.",
        ),
        bare(
            "scopes",
            Shape::Texts,
            "The scopes to ask for. By default, those that the server names.",
        ),
        key(
            "resource",
            Shape::Either(&Shape::Flag, &Shape::Text),
            "true",
            "The `resource` parameter: true is the one that the server publishes, false is none, for \
             providers that reject it, and a string is another one.",
        ),
        bare(
            "metadataUrl",
            Shape::Text,
            "The URL of the authorization server's metadata, in place of the one that the server \
             names: for providers whose metadata names another issuer.",
        ),
        key(
            "assumePkce",
            Shape::Flag,
            "false",
            "If true, the authorization server is taken to support PKCE with S256 if its metadata does \
             not mention PKCE. Set it only if the provider's documentation says so.",
        ),
        bare(
            "authorizationParameters",
            Shape::TextMap,
            "Further parameters of the page that the user opens, such as {\"prompt\": \"consent\"}, or of \
             the request for a code.",
        ),
        key(
            "grant",
            Shape::Choice(&[
                "authorization_code",
                "device_code",
                "client_credentials",
                "jwt_bearer",
            ]),
            r#""authorization_code""#,
            "\"authorization_code\": a user signs in with a browser; \"device_code\": with a browser on \
             any device, where the user enters a code; \"client_credentials\": the registered client \
             signs in for itself; \"jwt_bearer\": it presents an assertion that another party has \
             signed.",
        ),
        bare(
            "assertionFile",
            Shape::Text,
            "The file with that assertion, such as the token of a workload. It is read at each use.",
        ),
        bare(
            "identityProvider",
            Shape::Object(&IDENTITY_PROVIDER),
            "The identity provider of your company, which issues the assertion for you.",
        ),
    ],
    meant: &[
        ("id", "clientId"),
        ("secret", "clientSecret"),
        ("authorizationServer", "issuer"),
        ("authorizationServerMetadataUrl", "metadataUrl"),
        ("authorizationParams", "authorizationParameters"),
        ("callbackUrl", "redirectUri"),
        ("callbackUri", "redirectUri"),
        ("redirectUrl", "redirectUri"),
        ("scope", "scopes"),
        ("audience", "resource"),
        ("grantType", "grant"),
        ("assertion", "assertionFile"),
    ],
    one_of: &[],
};

const ISOLATION: Keys = Keys {
    all: &[
        bare(
            "engine",
            Shape::Either(&Shape::Text, &Shape::Texts),
            "The container engine: its program, or a list of the program and its first arguments. \
             By default, `docker`, or `podman` if there is no `docker` in PATH.",
        ),
        key(
            "network",
            Shape::Either(&Shape::Flag, &Shape::Text),
            "false",
            "The network of the container, by name; true is the engine's default network, and \
             false is none.",
        ),
        bare(
            "memory",
            Shape::Text,
            "The memory limit in the notation of the engine, such as \"512m\". By default, \"1g\".",
        ),
        bare(
            "cpus",
            Shape::Either(&Shape::Amount, &Shape::Text),
            "The number of CPUs that the container may use, such as 1.5. By default, there is no \
             limit.",
        ),
        bare(
            "pids",
            Shape::Whole {
                min: 1,
                max: 4_194_304,
            },
            "The maximum number of processes in the container. By default, 256.",
        ),
        key(
            "mounts",
            Shape::Texts,
            "[]",
            "The mounts of the container, each \"SOURCE:TARGET\", or \"SOURCE:TARGET:ro\" for \
             read-only. A relative source is relative to the directory of this file.",
        ),
        key(
            "readOnly",
            Shape::Flag,
            "false",
            "If true, the root file system of the container is read-only.",
        ),
        key(
            "runArgs",
            Shape::Texts,
            "[]",
            "Additional arguments for the engine's `run` command.",
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
