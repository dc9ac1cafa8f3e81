// A server on @modelcontextprotocol/sdk, with the tools of every peer.
//
//     node typescript1_server.mjs stdio
//     node typescript1_server.mjs http     streamable HTTP, at /mcp
//     node typescript1_server.mjs sse      HTTP+SSE of 2024-11-05, at /sse
//
// On a port it says on stderr where it listens.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { McpServer, ResourceTemplate } from "@modelcontextprotocol/sdk/server/mcp.js";
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import {
    CreateMessageResultSchema,
    ElicitResultSchema,
    ListRootsResultSchema,
    SubscribeRequestSchema,
    UnsubscribeRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";

const notes = new Map([["greeting", "hello"]]);
const learnt = [];
// One for each client, with what it has subscribed to.
const servers = new Map();

const text = (text) => ({ content: [{ type: "text", text }] });
const contents = (uri, text) => ({ contents: [{ uri: String(uri), mimeType: "text/plain", text }] });

function make() {
    const server = new McpServer(
        { name: "typescript-peer", version: "1.0.0" },
        { capabilities: { logging: {}, resources: { subscribe: true } }, instructions: "A peer for tests." },
    );
    const subscribed = new Set();
    servers.set(server, subscribed);
    server.server.onclose = () => servers.delete(server);
    server.server.setRequestHandler(SubscribeRequestSchema, ({ params }) => {
        subscribed.add(params.uri);
        return {};
    });
    server.server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => {
        subscribed.delete(params.uri);
        return {};
    });

    const tool = (name, inputSchema, call) => server.registerTool(name, { description: name, inputSchema }, call);
    const progress = async ({ _meta, sendNotification }, progress, total, message) => {
        if (_meta?.progressToken !== undefined) {
            const params = { progressToken: _meta.progressToken, progress, total, message };
            await sendNotification({ method: "notifications/progress", params });
        }
    };
    tool("add", { a: z.number(), b: z.number() }, ({ a, b }) => text(`${a + b}`));
    tool("fail", { message: z.string() }, ({ message }) => {
        throw new Error(message);
    });
    tool("count", { to: z.number() }, async ({ to }, extra) => {
        for (let step = 1; step <= to; step += 1) {
            await progress(extra, step, to, `step ${step}`);
        }
        return text(`counted to ${to}`);
    });
    tool("sleep", { seconds: z.number() }, async ({ seconds }, extra) => {
        console.error("sleep began");
        await progress(extra, 0, seconds, "asleep");
        await new Promise((resolve) => {
            const timer = setTimeout(resolve, seconds * 1000);
            const cancelled = () => {
                console.error("sleep was cancelled");
                clearTimeout(timer);
                resolve();
            };
            // Whoever heard of the progress may have withdrawn the call already.
            if (extra.signal.aborted) cancelled();
            else extra.signal.addEventListener("abort", cancelled);
        });
        return text("awake");
    });
    tool("log", { message: z.string() }, async ({ message }, { sendNotification }) => {
        const params = { level: "info", logger: "peer", data: message };
        await sendNotification({ method: "notifications/message", params });
        return text("logged");
    });
    tool("ask", { question: z.string() }, async ({ question }, { sendRequest }) => {
        const requestedSchema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
        const params = { mode: "form", message: question, requestedSchema };
        const answer = await sendRequest({ method: "elicitation/create", params }, ElicitResultSchema);
        return text(answer.action === "accept" ? `accept: ${answer.content.name}` : answer.action);
    });
    tool("sample", { prompt: z.string() }, async ({ prompt }, { sendRequest }) => {
        const messages = [{ role: "user", content: { type: "text", text: prompt } }];
        const request = { method: "sampling/createMessage", params: { messages, maxTokens: 100 } };
        const answer = await sendRequest(request, CreateMessageResultSchema);
        return text(`${answer.model}: ${answer.content.text}`);
    });
    tool("roots", {}, async (_, { sendRequest }) => {
        const { roots } = await sendRequest({ method: "roots/list" }, ListRootsResultSchema);
        return text(roots.map(({ uri }) => uri).join("\n"));
    });
    tool("set_note", { name: z.string(), text: z.string() }, async (note) => {
        notes.set(note.name, note.text);
        const uri = `note://${note.name}`;
        for (const [server, subscribed] of servers) {
            if (subscribed.has(uri)) {
                await server.server.sendResourceUpdated({ uri });
            }
        }
        return text("set");
    });
    const learn = (name) => tool(name, {}, () => text(name));
    tool("learn", { name: z.string() }, ({ name }) => {
        learnt.push(name);
        for (const teach of [...servers.keys()].map((server) => server.teach)) {
            teach(name);
        }
        return text(`learnt ${name}`);
    });
    server.teach = learn;
    learnt.forEach(learn);

    server.registerResource("about", "peer://about", {}, (uri) => contents(uri, "a peer for tests"));
    const template = new ResourceTemplate("note://{name}", { list: undefined });
    server.registerResource("note", template, {}, (uri, { name }) => contents(uri, notes.get(name)));
    const greeting = (name) => ({ role: "user", content: { type: "text", text: `Say hello to ${name}.` } });
    server.registerPrompt("greet", { argsSchema: { name: z.string() } }, ({ name }) => ({
        messages: [greeting(name)],
    }));
    return server;
}

const sessions = new Map();

async function http(request, response) {
    const id = request.headers["mcp-session-id"];
    let transport = sessions.get(id);
    if (!transport && id !== undefined) {
        response.writeHead(404).end();
        return;
    }
    if (!transport) {
        transport = new StreamableHTTPServerTransport({
            sessionIdGenerator: randomUUID,
            onsessioninitialized: (id) => sessions.set(id, transport),
        });
        await make().connect(transport);
    }
    await transport.handleRequest(request, response);
}

async function sse(request, response) {
    const { pathname, searchParams } = new URL(request.url, "http://localhost");
    if (request.method === "GET" && pathname === "/sse") {
        const transport = new SSEServerTransport("/messages", response);
        sessions.set(transport.sessionId, transport);
        await make().connect(transport);
        return;
    }
    const transport = sessions.get(searchParams.get("sessionId"));
    if (transport && request.method === "POST") {
        await transport.handlePostMessage(request, response);
    } else {
        response.writeHead(404).end();
    }
}

const transport = process.argv[2];
if (transport === "stdio") {
    await make().connect(new StdioServerTransport());
} else {
    const server = createServer(transport === "sse" ? sse : http);
    server.listen(0, "127.0.0.1", () => console.error(`listening on http://127.0.0.1:${server.address().port}`));
}
