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
            "The URL or path of this JSON Schema. Editors use it for completion and checks; the \
             gateway ignores it.",
        ),
        key(
            "listen",
            Shape::Text,
            r#""127.0.0.1:7777""#,
            "The address that the gateway listens on, as HOST:PORT. HOST must be a loopback \
             address or localhost; port 0 selects a free port. A change takes effect when the \
             gateway is restarted.",
        ),
        key(
            "view",
            Shape::Choice(&["auto", "search", "direct"]),
            r#""auto""#,
            "The tools that /mcp and `switchboard stdio` list: \"search\" lists a few tools for \
             finding and calling all others, \"direct\" lists every tool of every server, and \
             \"auto\" is direct up to 40 tools and 24 KiB of definitions, and search above that, \
             except for clients that search the list themselves.",
        ),
        key(
            "mcpServers",
            Shape::Named("server", &SERVER),
            "{}",
            "The MCP servers behind the gateway, by name. A name has 1 to 64 characters without / \
             and control characters, and must not be \".\", \"..\" or \"switchboard\".",
        ),
        key(
            "profiles",
            Shape::Named("profile", &PROFILE),
            "{}",
            "Profiles by name: each says what a client may see and call. A client uses one at \
             /mcp/p/NAME, with `switchboard stdio --profile NAME`, or after `switchboard connect \
             CLIENT --profile NAME`. For that client, the servers, tools, prompts and resources \
             that the profile leaves out do not exist.",
        ),
        key(
            "clients",
            Shape::Named("client", &CLIENT),
            "{}",
            "Settings for clients, by the name that a client gives itself (`switchboard clients` \
             lists the names). * matches any characters, and case does not matter.",
        ),
        key(
            "waitTimeoutMs",
            MS,
            "5000",
            "The time, in milliseconds, that a request waits for a part of the gateway that is not \
             ready: the search index, the approvals, a list that its server has changed, or the \
             next attempt to start a server that failed. After that, the request fails with an \
             error that says when to retry.",
        ),
        bare(
            "approvals",
            Shape::Object(&APPROVALS),
            "Approvals: the calls that need one, who answers servers' questions, timeouts and \
             notifications.",
        ),
        bare(
            "sampling",
            Shape::Object(&SAMPLING),
            "Sampling: the model that answers servers' requests for completions, and its limits.",
        ),
        bare(
            "memory",
            Shape::Object(&MEMORY),
            "The built-in memory server.",
        ),
        bare("search", Shape::Object(&SEARCH), "The search for tools."),
        bare(
            "results",
            Shape::Object(&RESULTS),
            "Limits for the results of tools.",
        ),
        bare(
            "sessions",
            Shape::Object(&SESSIONS),
            "Sessions of clients over HTTP that use a protocol revision before 2026-07-28.",
        ),
        bare(
            "auth",
            Shape::Object(&AUTH),
            "Access control for MCP clients.",
        ),
        bare(
            "shutdown",
            Shape::Object(&SHUTDOWN),
            "Time limits for stopping servers when the gateway stops.",
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

const PROFILE: Keys = Keys {
    all: &[
        bare(
            "servers",
            Shape::Texts,
            "The servers of the profile, by name; * matches any characters. By default, all servers.",
        ),
        bare(
            "tools",
            Shape::Object(&PROFILE_TOOLS),
            "The tools of the profile. By default, all tools of its servers.",
        ),
        bare(
            "view",
            Shape::Choice(&["auto", "search", "direct"]),
            "The tools that /mcp/p/NAME lists, as in `view`. By default, `view`.",
        ),
        bare(
            "approvals",
            Shape::Choice(&["rules", "destructive", "writes", "all"]),
            "The calls that need approval if no rule matches, as in `approvals.tools`. It can add \
             to what `approvals.tools` and a server's `approve` say, and takes nothing away.",
        ),
        bare(
            "memory",
            Shape::Object(&PROFILE_MEMORY),
            "The part of the memory that the profile has. By default, all of it.",
        ),
    ],
    meant: &[
        ("server", "servers"),
        ("mcpServers", "servers"),
        ("allow", "tools"),
        ("deny", "tools"),
        ("approve", "approvals"),
    ],
    one_of: &[],
};

const CLIENT: Keys = Keys {
    all: &[bare(
        "view",
        Shape::Choice(&["auto", "search", "direct"]),
        "The tools that /mcp and `switchboard stdio` list for this client, as in `view`. The view \
         of a profile takes precedence.",
    )],
    meant: &[],
    one_of: &[],
};

const PROFILE_MEMORY: Keys = Keys {
    all: &[bare(
        "namespace",
        Shape::Text,
        "The only namespace that the profile reads and writes. Tools of the memory that do \
         not take a namespace, its prompts and its resources are left out.",
    )],
    meant: &[("scope", "namespace"), ("name", "namespace")],
    one_of: &[],
};

const PROFILE_TOOLS: Keys = Keys {
    all: &[
        bare(
            "allow",
            Shape::Texts,
            "If present, only these tools, as patterns such as \"github:get_*\". A pattern \
             matches a tool by its own name and by its new one, if an override changes it.",
        ),
        key(
            "deny",
            Shape::Texts,
            "[]",
            "Tools that are left out even if `allow` lists them, as patterns such as \"*:delete_*\".",
        ),
    ],
    meant: &[
        ("include", "allow"),
        ("exclude", "deny"),
        ("only", "allow"),
        ("hide", "deny"),
    ],
    one_of: &[],
};

const APPROVALS: Keys = Keys {
    all: &[
        key(
            "shortTimeoutMs",
            MS,
            "30000",
            "The time, in milliseconds, after which a pending request escalates: the gateway shows \
             a desktop notification and calls the webhook.",
        ),
        key(
            "longTimeoutMs",
            MS,
            "270000",
            "The time, in milliseconds after the escalation, after which a request expires and its \
             call fails. A client of revision 2026-07-28 has the same time to return with the \
             input that it was asked for.",
        ),
        key(
            "route",
            Shape::Choice(&["auto", "client", "human"]),
            r#""auto""#,
            "The party that answers servers' questions (sampling, elicitation): \"auto\" is the \
             client if it can answer, otherwise you; \"client\" is always the client; \"human\" is \
             always you, in the console or at the command line. Rules that deny or ask take \
             precedence.",
        ),
        key(
            "tools",
            Shape::Choice(&["rules", "destructive", "writes", "all"]),
            r#""rules""#,
            "The calls that need approval if no rule matches: \"rules\": none; \"destructive\": \
             calls to tools that may destroy data; \"writes\": calls to tools that may change \
             data; \"all\": every call, including resources and prompts. A server's `approve` \
             overrides it.",
        ),
        key(
            "rules",
            Shape::Values,
            "[]",
            "The rules that allow calls, deny them, or ask for approval. Each is a string such as \
             \"ask files:delete_*\", or an object. A rule that denies wins; otherwise the most \
             specific rule decides.",
        ),
        bare(
            "webhook",
            Shape::Object(&WEBHOOK),
            "The webhook that receives events about requests. None by default.",
        ),
        key(
            "notify",
            Shape::Choice(&["auto", "off"]),
            r#""auto""#,
            "Desktop notifications about escalated requests: \"auto\": if there is a desktop; \
             \"off\": never.",
        ),
        key(
            "questionsPerCall",
            COUNT,
            "20",
            "The maximum number of questions (sampling, elicitation, roots) that a server may ask during one \
             call; the gateway refuses more.",
        ),
        key(
            "questionsPerMinute",
            COUNT,
            "30",
            "The maximum number of questions per minute that a server may ask; the gateway refuses more. \
             Questions that the client answers during its call do not count.",
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
        bare(
            "url",
            Shape::Text,
            "The URL that receives the events, http:// or https://. Required.",
        ),
        bare(
            "secret",
            Shape::Text,
            "The secret that signs every message, as Standard Webhooks specifies. Required. Write \
             it as ${secret:NAME} to keep it out of the file. If it starts with \"whsec_\", the \
             rest is base64.",
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
            "The events to send; \"escalated\" stands for the event approval.escalated.",
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
            "The model that answers sampling requests that you or a rule approve. None by default: \
             you answer them yourself.",
        ),
        key(
            "review",
            Shape::Flag,
            "false",
            "If true, you approve the model's answer before the server receives it.",
        ),
        bare(
            "budget",
            Shape::Object(&BUDGET),
            "The limits per server on sampling requests that a rule allows without your \
             approval. Requests that you approve count too, but are never refused. The counts \
             start at 0 when the gateway starts.",
        ),
    ],
    meant: &[("limits", "budget")],
    one_of: &[],
};

const BUDGET: Keys = Keys {
    all: &[
        key(
            "requestsPerCall",
            COUNT,
            "10",
            "The maximum number of sampling requests during one call.",
        ),
        key(
            "requestsPerHour",
            COUNT,
            "100",
            "The maximum number of sampling requests per hour.",
        ),
        key(
            "requestsPerDay",
            COUNT,
            "500",
            "The maximum number of sampling requests per day.",
        ),
        key(
            "tokensPerHour",
            COUNT,
            "500000",
            "The maximum number of input and output tokens per hour.",
        ),
        key(
            "tokensPerDay",
            COUNT,
            "2000000",
            "The maximum number of input and output tokens per day.",
        ),
        bare(
            "costPerDay",
            Shape::Price,
            "The maximum cost per day, in the currency of `prices`. Unlimited by default.",
        ),
        key(
            "promptBytes",
            COUNT,
            "262144",
            "The maximum length of a sampling request, in bytes.",
        ),
        key(
            "concurrent",
            Shape::Whole { min: 1, max: 1_000 },
            "2",
            "The maximum number of sampling requests at the same time; more wait.",
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
            "The API of the provider: \"openai\" (chat completions, which most local model servers \
             support) or \"anthropic\" (messages). Required.",
        ),
        bare(
            "baseUrl",
            Shape::Text,
            "The base URL of the API, such as http://127.0.0.1:11434/v1. By default, the public \
             URL of the provider.",
        ),
        bare(
            "model",
            Shape::Text,
            "The model that answers unless a server requests one of `models`. Required.",
        ),
        bare(
            "apiKey",
            Shape::Text,
            "The API key. Write it as ${secret:NAME} or ${env:NAME} to keep it out of the file. \
             None by default.",
        ),
        key(
            "models",
            Shape::Texts,
            "[]",
            "Additional models that servers may request.",
        ),
        key(
            "maxTokens",
            Shape::Whole {
                min: 1,
                max: 1_073_741_824,
            },
            "8192",
            "The maximum number of tokens in an answer, even if a server requests more.",
        ),
        key(
            "timeoutMs",
            MS,
            "120000",
            "The time limit for an answer, in milliseconds.",
        ),
        bare(
            "prices",
            Shape::Object(&PRICES),
            "The prices of a million tokens, in any one currency, for `costPerDay`. None by \
             default.",
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
        bare(
            "input",
            Shape::Price,
            "The price of a million input tokens. Required.",
        ),
        bare(
            "output",
            Shape::Price,
            "The price of a million output tokens. Required.",
        ),
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
            "If true, the built-in memory is one of the servers, with the name \"memory\". An \
             entry of that name in `mcpServers` replaces it.",
        ),
        key(
            "extract",
            Shape::Flag,
            "true",
            "If true, the memory extracts people and things from the texts that it stores, in \
             addition to those that the caller names.",
        ),
        key(
            "tools",
            Shape::Choice(&["compact", "all"]),
            r#""compact""#,
            "The memory tools in views that list all servers: \"compact\": five with short \
             definitions; \"all\": every tool. /mcp/s/memory always lists every tool, and every \
             tool can be found by search and called.",
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
            "The model for search by meaning. \"auto\" is the sentence model all-MiniLM-L6-v2 if \
             it is in the directory `models` of the home, otherwise the built-in word vectors; \
             \"minilm\" is that model, which the gateway downloads in the background if it is \
             missing; \"built-in\" is the word vectors; \"off\" is search by keyword only. Any \
             other value is the directory of a model, relative to `models`, or a URL to download \
             one from.",
        ),
        key(
            "learn",
            Shape::Flag,
            "true",
            "If true, a tool that is called after a search ranks higher in later, similar \
             searches. `switchboard search --forget` clears this feedback.",
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
            "The maximum length, in bytes, of a result that an agent receives at once. The gateway \
             truncates a longer one, and `read_result` reads the rest. A server's `maxResultBytes` \
             overrides it. /mcp/s/NAME never truncates results.",
        ),
        key(
            "maxTokens",
            RESULT_TOKENS,
            "16000",
            "The maximum length, in estimated tokens, of a result that an agent receives at once. \
             The gateway truncates a longer one, and `read_result` reads the rest. A server's \
             `maxResultTokens` overrides it. /mcp/s/NAME never truncates results.",
        ),
        key(
            "keepSeconds",
            Shape::Whole {
                min: 1,
                max: 604_800,
            },
            "3600",
            "The time, in seconds, for which `read_result` can read the rest of a truncated \
             result.",
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
        "The time, in seconds, without a request and without an open stream after which a session \
         ends. The client then gets status 404, and must initialize again.",
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
        "The credential that MCP clients must send over HTTP: \"token\" is a token that `switchboard \
         token create` printed, or the one in the file run/token; \"none\" accepts every program of your user on this machine \
         without one. The REST API and the console always require a credential.",
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
            "The time limit, in milliseconds, for all servers to stop when the gateway stops. The \
             gateway kills the servers that are still running then.",
        ),
        key(
            "containerTimeoutMs",
            MS,
            "30000",
            "The time limit, in milliseconds, for a container to stop. Its server's \
             `closeTimeoutMs` is limited to a third of this time, `termTimeoutMs` to half of it.",
        ),
    ],
    meant: &[],
    one_of: &[],
};
