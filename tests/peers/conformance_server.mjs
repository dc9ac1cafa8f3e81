// The server that the conformance suite asks for, on the official TypeScript SDK and in its style: a tool that needs
// an answer while it runs calls `elicitInput` or `requestSampling`, which the SDK has for the handshake revisions
// alone; the scenarios of 2026-07-28 have tools of their own, which return `inputRequired`.
//
//     node conformance_server.mjs both|old|new stdio
//     node conformance_server.mjs both|old|new http    streamable HTTP, at /mcp; stderr says on which port
//
// `old` speaks the handshake revisions only, `new` 2026-07-28 only.

import { randomBytes, randomUUID } from "node:crypto";
import {
    acceptedContent,
    CLIENT_CAPABILITIES_META_KEY,
    createMcpHandler,
    createRequestStateCodec,
    fromJsonSchema,
    inputRequired,
    isInitializeRequest,
    isLegacyRequest,
    McpServer,
    ResourceTemplate,
    WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { serveStdio, StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";
import { listen } from "./fetch_http.mjs";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

const DEFAULTS = {
    name: { type: "string", default: "John Doe" },
    age: { type: "integer", default: 30 },
    score: { type: "number", default: 95.5 },
    status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
    verified: { type: "boolean", default: true },
};
const titled = (...values) => values.map((value) => ({ const: value, title: `Option ${value}` }));
const ENUMS = {
    untitledSingle: { type: "string", enum: ["one", "two", "three"] },
    titledSingle: { type: "string", oneOf: titled("one", "two", "three") },
    legacyEnum: { type: "string", enum: ["one", "two", "three"], enumNames: ["One", "Two", "Three"] },
    untitledMulti: { type: "array", items: { type: "string", enum: ["one", "two", "three"] } },
    titledMulti: { type: "array", items: { anyOf: titled("one", "two", "three") } },
};
const SCHEMA_2020_12 = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    $defs: { address: { $anchor: "addressDef", type: "object", properties: { city: { type: "string" } } } },
    properties: {
        name: { type: "string" },
        address: { $ref: "#/$defs/address" },
        contactMethod: { type: "string", enum: ["phone", "email"] },
        phone: { type: "string" },
        email: { type: "string" },
    },
    allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
    if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
    then: { required: ["phone"] },
    else: { required: ["email"] },
    additionalProperties: false,
};

const states = createRequestStateCodec({ key: randomBytes(32) });
// Tells the streams of subscriptions/listen that a list changed; over HTTP there is a server for each request.
let notify = {
    toolsChanged: (server) => server.sendToolListChanged(),
    promptsChanged: (server) => server.sendPromptListChanged(),
};

const text = (text) => ({ content: [{ type: "text", text }] });
const embedded = (uri, mimeType, text) => ({ type: "resource", resource: { uri, mimeType, text } });
const contents = (uri, mimeType, content) => ({ contents: [{ uri: String(uri), mimeType, ...content }] });
const message = (content) => ({ role: "user", content });
const form = (message, properties, required = Object.keys(properties)) => ({
    message,
    requestedSchema: { type: "object", properties, required },
});
const sampling = (prompt) => ({ messages: [message({ type: "text", text: prompt })], maxTokens: 100 });
const pause = () => new Promise((resolve) => setTimeout(resolve, 50));

function make() {
    const server = new McpServer(
        { name: "typescript-conformance", version: "1.0.0" },
        {
            capabilities: {
                completions: {},
                logging: {},
                prompts: { listChanged: true },
                resources: { listChanged: true, subscribe: true },
                tools: { listChanged: true },
            },
            requestState: { verify: states.verify },
        },
    );
    const tool = (name, call, input = {}) =>
        server.registerTool(name, { description: name, inputSchema: z.object(input) }, call);

    contentTools(tool);
    askingTools(tool);
    inputRequiredTools(tool);
    tool("test_trigger_tool_change", () => {
        notify.toolsChanged(server);
        return text("told");
    });
    tool("test_trigger_prompt_change", () => {
        notify.promptsChanged(server);
        return text("told");
    });
    const header = { type: "object", properties: { region: { type: "string", "x-mcp-header": "Region" } } };
    const raw = (description, schema) => ({ description, inputSchema: fromJsonSchema(schema) });
    server.registerTool("test_x_mcp_header", raw("mirrors a header", header), ({ region }) => text(`${region}`));
    server.registerTool("json_schema_2020_12_tool", raw("has every keyword", SCHEMA_2020_12), () => text("ok"));
    resources(server);
    prompts(server);
    server.server.setRequestHandler("logging/setLevel", () => ({}));
    server.server.setRequestHandler("completion/complete", () => ({ completion: { values: [], hasMore: false } }));
    return server;
}

function contentTools(tool) {
    tool("test_simple_text", () => text("This is a simple text response for testing."));
    tool("test_image_content", () => ({ content: [{ type: "image", data: PNG, mimeType: "image/png" }] }));
    tool("test_audio_content", () => ({ content: [{ type: "audio", data: WAV, mimeType: "audio/wav" }] }));
    tool("test_embedded_resource", () => ({
        content: [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")],
    }));
    tool("test_multiple_content_types", () => ({
        content: [
            { type: "text", text: "Multiple content types test:" },
            { type: "image", data: PNG, mimeType: "image/png" },
            embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
        ],
    }));
    tool("test_error_handling", () => {
        throw new Error("This tool intentionally returns an error for testing");
    });
    tool("test_tool_with_logging", async (_, { mcpReq }) => {
        for (const data of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
            await mcpReq.log("info", data);
            await pause();
        }
        return text("logged");
    });
    tool("test_logging_tool", async (_, { mcpReq }) => {
        await mcpReq.log("info", "only for clients that set a level");
        return text("logged");
    });
    tool("test_tool_with_progress", async (_, { mcpReq }) => {
        const progressToken = mcpReq._meta?.progressToken;
        for (const progress of progressToken === undefined ? [] : [0, 50, 100]) {
            const params = { progressToken, progress, total: 100, message: `step ${progress} of 100` };
            await mcpReq.notify({ method: "notifications/progress", params });
            await pause();
        }
        return text("done");
    });
    tool("test_streaming_elicitation", () => text("no request of its own in this stream"));
}

function askingTools(tool) {
    // Without it, a question goes to the stream of the session, and is lost while the client has not opened that.
    const about = ({ id }) => ({ relatedRequestId: id });
    const asks = (name, what, input) =>
        tool(
            name,
            async (args, { mcpReq }) => {
                const { action, content } = await mcpReq.elicitInput(what(args), about(mcpReq));
                return text(`User response: action=${action}, content=${JSON.stringify(content ?? {})}`);
            },
            input,
        );
    const response = { response: { type: "string", description: "User's response" } };
    asks("test_elicitation", ({ message }) => form(message, response), { message: z.string() });
    asks("test_elicitation_sep1034_defaults", () => form("Please review the defaults", DEFAULTS, []));
    asks("test_elicitation_sep1330_enums", () => form("Please select options", ENUMS, []));
    tool(
        "test_sampling",
        async ({ prompt }, { mcpReq }) => {
            const { content } = await mcpReq.requestSampling(sampling(prompt), about(mcpReq));
            return text(`LLM response: ${content.text}`);
        },
        { prompt: z.string() },
    );
}

function inputRequiredTools(tool) {
    const required = (name, call) => tool(`test_input_required_result_${name}`, call);
    const question = { user_name: inputRequired.elicit(form("What is your name?", { name: { type: "string" } })) };
    const confirmation = { confirm: inputRequired.elicit(form("Please confirm", { ok: { type: "boolean" } })) };
    const roots = { client_roots: inputRequired.listRoots() };
    const greeting = { greeting: inputRequired.createMessage(sampling("Generate a greeting")) };
    const accepted = ({ inputResponses }, key, member) => acceptedContent(inputResponses, key)?.[member];
    const ask = async (inputRequests, state) =>
        inputRequired({ inputRequests, requestState: state && (await states.mint({ ...state, nonce: randomUUID() })) });

    required("elicitation", (_, { mcpReq }) => {
        const name = accepted(mcpReq, "user_name", "name");
        return typeof name === "string" ? text(`Hello, ${name}!`) : ask(question);
    });
    required("sampling", (_, { mcpReq }) => {
        const answer = mcpReq.inputResponses?.capital_question;
        const asked = inputRequired.createMessage(sampling("What is the capital of France?"));
        return answer ? text(`Sampling response: ${answer.content?.text}`) : ask({ capital_question: asked });
    });
    required("list_roots", (_, { mcpReq }) => {
        const answer = mcpReq.inputResponses?.client_roots;
        return answer ? text(answer.roots.map(({ uri }) => uri).join(", ")) : ask(roots);
    });
    required("request_state", (_, { mcpReq }) =>
        mcpReq.requestState() && accepted(mcpReq, "confirm", "ok") !== undefined
            ? text("state-ok")
            : ask(confirmation, { tool: "request_state" }),
    );
    required("tampered_state", (_, { mcpReq }) =>
        mcpReq.requestState() && accepted(mcpReq, "confirm", "ok") !== undefined
            ? text("integrity-ok")
            : ask(confirmation, { tool: "tampered_state" }),
    );
    required("multiple_inputs", (_, { mcpReq }) => {
        const { user_name, greeting: greeted, client_roots } = mcpReq.inputResponses ?? {};
        return user_name && greeted && client_roots
            ? text("all inputs received")
            : ask({ ...question, ...greeting, ...roots }, { tool: "multiple_inputs" });
    });
    required("multi_round", (_, { mcpReq }) => {
        const { round = 0, name } = mcpReq.requestState() ?? {};
        if (round === 0) {
            const step1 = inputRequired.elicit(form("Step 1: What is your name?", { name: { type: "string" } }));
            return ask({ step1 }, { round: 1 });
        }
        if (round === 1) {
            const step2 = inputRequired.elicit(form("Step 2: Which colour?", { color: { type: "string" } }));
            return ask({ step2 }, { round: 2, name: accepted(mcpReq, "step1", "name") });
        }
        return text(`${name} likes ${accepted(mcpReq, "step2", "color")}`);
    });
    required("capabilities", (_, { mcpReq }) => {
        const declared = mcpReq.envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? {};
        const requests = {
            ...(declared.elicitation && question),
            ...(declared.sampling && greeting),
            ...(declared.roots && roots),
        };
        const isOver = mcpReq.inputResponses !== undefined || Object.keys(requests).length === 0;
        return isOver ? text("done") : ask(requests);
    });
    // The SDK refuses this one for clients that cannot sample.
    tool("test_missing_capability", (_, { mcpReq }) =>
        mcpReq.inputResponses?.greeting ? text("sampled") : ask(greeting),
    );
}

function resources(server) {
    const plain = (uri) => contents(uri, "text/plain", { text: "This is the content of the static text resource." });
    server.registerResource("static-text", "test://static-text", { mimeType: "text/plain" }, plain);
    server.registerResource("watched", "test://watched-resource", { mimeType: "text/plain" }, plain);
    server.registerResource("static-binary", "test://static-binary", { mimeType: "image/png" }, (uri) =>
        contents(uri, "image/png", { blob: PNG }),
    );
    const template = new ResourceTemplate("test://template/{id}/data", { list: undefined });
    server.registerResource("template", template, { mimeType: "application/json" }, (uri, { id }) =>
        contents(uri, "application/json", { text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) }),
    );
    server.server.setRequestHandler("resources/subscribe", () => ({}));
    server.server.setRequestHandler("resources/unsubscribe", () => ({}));
}

function prompts(server) {
    const prompt = (name, args, get) =>
        server.registerPrompt(name, { description: name, argsSchema: z.object(args) }, get);
    prompt("test_simple_prompt", {}, () => ({
        messages: [message({ type: "text", text: "This is a simple prompt for testing." })],
    }));
    prompt("test_prompt_with_arguments", { arg1: z.string(), arg2: z.string() }, ({ arg1, arg2 }) => ({
        messages: [message({ type: "text", text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'` })],
    }));
    prompt("test_prompt_with_embedded_resource", { resourceUri: z.string() }, ({ resourceUri }) => ({
        messages: [message(embedded(resourceUri, "text/plain", "Embedded resource content for testing."))],
    }));
    prompt("test_prompt_with_image", {}, () => ({
        messages: [message({ type: "image", data: PNG, mimeType: "image/png" })],
    }));
    prompt("test_input_required_result_prompt", {}, (_, { mcpReq }) => {
        const context = acceptedContent(mcpReq.inputResponses, "user_context")?.context;
        if (context === undefined) {
            const user_context = inputRequired.elicit(form("Which context?", { context: { type: "string" } }));
            return inputRequired({ inputRequests: { user_context } });
        }
        return { messages: [message({ type: "text", text: `Use the following context: ${context}` })] };
    });
}

const sessions = new Map();

// The sessions of the handshake revisions.
async function serveSessions(request) {
    const id = request.headers.get("mcp-session-id");
    if (id !== null) {
        return sessions.get(id)?.handleRequest(request) ?? new Response(null, { status: 404 });
    }
    if (request.method !== "POST" || !isInitializeRequest(await request.clone().json().catch(() => undefined))) {
        return new Response(null, { status: 400 });
    }
    const transport = new WebStandardStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => sessions.set(id, transport),
        onsessionclosed: (id) => sessions.delete(id),
    });
    await make().connect(transport);
    return transport.handleRequest(request);
}

const [era, transport] = process.argv.slice(2);
if (transport === "stdio" && era === "old") {
    await make().connect(new StdioServerTransport());
} else if (transport === "stdio") {
    serveStdio(make, { legacy: era === "new" ? "reject" : "serve" });
} else if (era === "old") {
    listen(serveSessions);
} else {
    const handler = createMcpHandler(make, { legacy: "reject" });
    notify = handler.notify;
    const speaksBoth = era === "both";
    listen(async (request) =>
        speaksBoth && (await isLegacyRequest(request)) ? serveSessions(request) : handler.fetch(request),
    );
}
