//! Every key of `switchboard.json`, with its allowed values and its description.

mod server;

pub(crate) use server::{SERVER, WAYS};

use crate::shape::{Key, Keys, Shape};

/// A time in milliseconds of up to one day. Anything that waits longer has been forgotten.
const MS: Shape = Shape::Whole {
    min: 1,
    max: 24 * 60 * 60 * 1000,
};

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
        bare(
            "results",
            Shape::Object(&RESULTS),
            "How much of a tool's result an agent is given at once.",
        ),
        bare(
            "sessions",
            Shape::Object(&SESSIONS),
            "Sessions of clients of older revisions over HTTP.",
        ),
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
        ("contextServers", "mcpServers"),
        ("port", "listen"),
        ("host", "listen"),
        ("bind", "listen"),
        ("address", "listen"),
        ("timeout", "waitTimeoutMs"),
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
            "tools",
            Shape::Choice(&["rules", "destructive", "writes", "all"]),
            r#""rules""#,
            "Which calls of tools are asked about where no rule says otherwise: none, those of tools that \
             may destroy, those that may change anything, or all. Servers can have their own \"approve\".",
        ),
        key(
            "rules",
            Shape::Values,
            "[]",
            "What is allowed, asked about or denied.",
        ),
        bare(
            "webhook",
            Shape::Object(&WEBHOOK),
            "An address that is told about requests.",
        ),
        key(
            "notify",
            Shape::Choice(&["auto", "off"]),
            r#""auto""#,
            "Whether a request that became louder is shown on the desktop, where there is one.",
        ),
        key(
            "questionsPerCall",
            COUNT,
            "20",
            "The most questions (sampling, elicitation, roots) that a server may ask during one call.",
        ),
        key(
            "questionsPerMinute",
            COUNT,
            "30",
            "The most questions that a server may ask in a minute, those that its client answers not counted.",
        ),
    ],
    meant: &[
        ("timeout", "shortTimeoutMs"),
        ("hook", "webhook"),
        ("notifications", "notify"),
        ("approve", "tools"),
    ],
    one_of: &[],
};

pub(crate) const WEBHOOK: Keys = Keys {
    all: &[
        bare("url", Shape::Text, "Where it is, http:// or https://."),
        bare(
            "secret",
            Shape::Text,
            "What every message is signed with as Standard Webhooks say, best as ${secret:NAME}. After \
             \"whsec_\" it is base64.",
        ),
        key(
            "on",
            Shape::Choices(&[
                "created",
                "escalated",
                "changed",
                "decided",
                "expired",
                "withdrawn",
                "delivered",
            ]),
            r#"["escalated"]"#,
            "What it is told about.",
        ),
    ],
    meant: &[
        ("address", "url"),
        ("endpoint", "url"),
        ("key", "secret"),
        ("events", "on"),
    ],
    one_of: &[&["url"], &["secret"]],
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
        bare(
            "budget",
            Shape::Object(&BUDGET),
            "The limits of each server for answers that a rule allows without a person.",
        ),
    ],
    meant: &[("limits", "budget")],
    one_of: &[],
};

const BUDGET: Keys = Keys {
    all: &[
        key("requestsPerCall", COUNT, "10", "Requests in one call."),
        key("requestsPerHour", COUNT, "100", "Requests in an hour."),
        key("requestsPerDay", COUNT, "500", "Requests in a day."),
        key(
            "tokensPerHour",
            COUNT,
            "500000",
            "Tokens read and written in an hour.",
        ),
        key(
            "tokensPerDay",
            COUNT,
            "2000000",
            "Tokens read and written in a day.",
        ),
        bare(
            "costPerDay",
            Shape::Price,
            "The cost of a day, in the currency of the provider's prices.",
        ),
        key(
            "promptBytes",
            COUNT,
            "262144",
            "The length of a request, in bytes.",
        ),
        key(
            "concurrent",
            Shape::Whole { min: 1, max: 1_000 },
            "2",
            "Requests at a time; more wait.",
        ),
    ],
    meant: &[],
    one_of: &[],
};

/// A limit that is a count.
const COUNT: Shape = Shape::Whole {
    min: 1,
    max: 1_000_000_000,
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
        key(
            "models",
            Shape::Texts,
            "[]",
            "Further models that may be asked for.",
        ),
        key(
            "maxTokens",
            Shape::Whole {
                min: 1,
                max: 1_073_741_824,
            },
            "8192",
            "The most tokens of an answer, whatever is asked for.",
        ),
        key(
            "timeoutMs",
            MS,
            "120000",
            "How long an answer may take, in milliseconds.",
        ),
        bare(
            "prices",
            Shape::Object(&PRICES),
            "What a million tokens cost, in any one currency.",
        ),
    ],
    meant: &[
        ("type", "kind"),
        ("url", "baseUrl"),
        ("key", "apiKey"),
        ("timeout", "timeoutMs"),
        ("price", "prices"),
    ],
    one_of: &[&["kind"], &["model"]],
};

pub(crate) const PRICES: Keys = Keys {
    all: &[
        bare("input", Shape::Price, "Of the request."),
        bare("output", Shape::Price, "Of the answer."),
    ],
    meant: &[],
    one_of: &[&["input"], &["output"]],
};

const MEMORY: Keys = Keys {
    all: &[
        key(
            "enabled",
            Shape::Flag,
            "true",
            "Whether the built-in memory is offered, as the server \"memory\". A server of mcpServers with that \
             name takes its place.",
        ),
        key(
            "extract",
            Shape::Flag,
            "true",
            "Whether people and things are found in what is stored, beside those that are named.",
        ),
        key(
            "tools",
            Shape::Choice(&["compact", "all"]),
            r#""compact""#,
            "The tools that are listed among those of all servers: \"compact\" five with short definitions, \"all\" \
             every tool. /mcp/s/memory always lists every tool, and every tool can be found by search and called.",
        ),
    ],
    meant: &[("entities", "extract"), ("extraction", "extract")],
    one_of: &[],
};

const SEARCH: Keys = Keys {
    all: &[
        key(
            "embeddings",
            Shape::Text,
            r#""auto""#,
            "How tools are found by meaning: \"auto\" with the sentence model all-MiniLM-L6-v2 if it is \
             in the folder `models`, else with the built-in word vectors; \"minilm\" fetches that model \
             in the background if it is not there; \"built-in\" never uses it; \"off\" searches by words \
             alone; anything else is the folder of a model.",
        ),
        key(
            "learn",
            Shape::Flag,
            "true",
            "Whether tools that were called after a search rank higher in later ones like it. \
             `switchboard search --forget` clears what was learnt.",
        ),
    ],
    meant: &[("model", "embeddings"), ("learning", "learn")],
    one_of: &[],
};

const RESULTS: Keys = Keys {
    all: &[
        key(
            "maxBytes",
            RESULT_BYTES,
            "65536",
            "A result with more bytes is cut; `read_result` reads on. Servers can have their own limit.",
        ),
        key(
            "maxTokens",
            RESULT_TOKENS,
            "16000",
            "A result of more tokens, by estimate, is cut. Servers can have their own limit.",
        ),
        key(
            "keepSeconds",
            Shape::Whole {
                min: 1,
                max: 604_800,
            },
            "3600",
            "How long the whole of a result that was cut can be read, in seconds.",
        ),
    ],
    meant: &[
        ("limit", "maxBytes"),
        ("maxSize", "maxBytes"),
        ("ttl", "keepSeconds"),
    ],
    one_of: &[],
};

const SESSIONS: Keys = Keys {
    all: &[key(
        "idleSeconds",
        Shape::Whole {
            min: 1,
            max: 604_800,
        },
        "1800",
        "How long a session may be idle before it ends, in seconds. It is idle without a request and without an open \
         stream. The client then gets the status 404, and initializes again.",
    )],
    meant: &[
        ("timeout", "idleSeconds"),
        ("idleTimeout", "idleSeconds"),
        ("ttl", "idleSeconds"),
    ],
    one_of: &[],
};

pub(crate) const RESULT_BYTES: Shape = Shape::Whole {
    min: 1_024,
    max: 1_073_741_824,
};
pub(crate) const RESULT_TOKENS: Shape = Shape::Whole {
    min: 256,
    max: 1_073_741_824,
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
