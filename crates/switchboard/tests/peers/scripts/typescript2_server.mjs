// A server on @modelcontextprotocol/server, with the tools of every peer, that speaks the newest revision and
// no other.
//
//     node typescript2_server.mjs stdio
//     node typescript2_server.mjs http     streamable HTTP, at /mcp
//
// On a port it says on stderr where it listens.

import { createServer } from "node:http";
import { Readable } from "node:stream";
import { createMcpHandler, inputRequired, McpServer, ResourceTemplate } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const notes = new Map([["greeting", "hello"]]);
const learnt = [];
// How those who listen are told; over HTTP there is a server for each request, and none of them knows.
let tell = {
    updated: (server, uri) => server.server.sendResourceUpdated({ uri }),
    changed: (server) => server.sendToolListChanged(),
};

const text = (text) => ({ content: [{ type: "text", text }] });
const contents = (uri, text) => ({ contents: [{ uri: String(uri), mimeType: "text/plain", text }] });

function make() {
    const server = new McpServer(
        { name: "typescript-peer", version: "2.0.0" },
        {
            capabilities: { logging: {}, resources: { subscribe: true }, tools: { listChanged: true } },
            instructions: "A peer for tests.",
        },
    );
    const tool = (name, input, call) =>
        server.registerTool(name, { description: name, inputSchema: z.object(input) }, call);
    const progress = async ({ _meta, notify }, progress, total, message) => {
        if (_meta?.progressToken !== undefined) {
            const params = { progressToken: _meta.progressToken, progress, total, message };
            await notify({ method: "notifications/progress", params });
        }
    };
    // The answer to a question, which the caller has if it has been asked before.
    const answer = ({ inputResponses }) => inputResponses?.question;
    const ask = (question) => inputRequired({ inputRequests: { question }, requestState: "what it was about" });

    tool("add", { a: z.number(), b: z.number() }, ({ a, b }) => text(`${a + b}`));
    tool("fail", { message: z.string() }, ({ message }) => {
        throw new Error(message);
    });
    tool("count", { to: z.number() }, async ({ to }, { mcpReq }) => {
        for (let step = 1; step <= to; step += 1) {
            await progress(mcpReq, step, to, `step ${step}`);
        }
        return text(`counted to ${to}`);
    });
    tool("sleep", { seconds: z.number() }, async ({ seconds }, { mcpReq }) => {
        console.error("sleep began");
        await progress(mcpReq, 0, seconds, "asleep");
        await new Promise((resolve) => {
            const timer = setTimeout(resolve, seconds * 1000);
            const cancelled = () => {
                console.error("sleep was cancelled");
                clearTimeout(timer);
                resolve();
            };
            // Whoever heard of the progress may have withdrawn the call already.
            if (mcpReq.signal.aborted) cancelled();
            else mcpReq.signal.addEventListener("abort", cancelled);
        });
        return text("awake");
    });
    tool("log", { message: z.string() }, async ({ message }, { mcpReq }) => {
        await mcpReq.log("info", message, "peer");
        return text("logged");
    });
    tool("ask", { question: z.string() }, ({ question }, { mcpReq }) => {
        const answered = answer(mcpReq);
        if (!answered) {
            const requestedSchema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
            return ask(inputRequired.elicit({ message: question, requestedSchema }));
        }
        return text(answered.action === "accept" ? `accept: ${answered.content.name}` : answered.action);
    });
    tool("sample", { prompt: z.string() }, ({ prompt }, { mcpReq }) => {
        const answered = answer(mcpReq);
        if (!answered) {
            const messages = [{ role: "user", content: { type: "text", text: prompt } }];
            return ask({ method: "sampling/createMessage", params: { messages, maxTokens: 100 } });
        }
        return text(`${answered.model}: ${answered.content.text}`);
    });
    tool("roots", {}, (_, { mcpReq }) => {
        const answered = answer(mcpReq);
        return answered ? text(answered.roots.map(({ uri }) => uri).join("\n")) : ask({ method: "roots/list" });
    });
    tool("set_note", { name: z.string(), text: z.string() }, async (note) => {
        notes.set(note.name, note.text);
        await tell.updated(server, `note://${note.name}`);
        return text("set");
    });
    tool("learn", { name: z.string() }, async ({ name }) => {
        learnt.push(name);
        tool(name, {}, () => text(name));
        await tell.changed(server);
        return text(`learnt ${name}`);
    });
    for (const name of learnt) {
        tool(name, {}, () => text(name));
    }

    server.registerResource("about", "peer://about", {}, (uri) => contents(uri, "a peer for tests"));
    const template = new ResourceTemplate("note://{name}", { list: undefined });
    server.registerResource("note", template, {}, (uri, { name }) => contents(uri, notes.get(name)));
    const greeting = (name) => ({ role: "user", content: { type: "text", text: `Say hello to ${name}.` } });
    server.registerPrompt("greet", { argsSchema: z.object({ name: z.string() }) }, ({ name }) => ({
        messages: [greeting(name)],
    }));
    return server;
}

if (process.argv[2] === "stdio") {
    serveStdio(make, { legacy: "reject" });
} else {
    const handler = createMcpHandler(make, { legacy: "reject" });
    tell = {
        updated: (_, uri) => handler.notify.resourceUpdated(uri),
        changed: () => handler.notify.toolsChanged(),
    };
    const server = createServer(async (request, response) => {
        const left = new AbortController();
        response.on("close", () => left.abort());
        const answer = await handler.fetch(
            new Request(new URL(request.url, `http://${request.headers.host}`), {
                method: request.method,
                headers: Object.entries(request.headers),
                body: request.method === "POST" ? Readable.toWeb(request) : undefined,
                duplex: "half",
                signal: left.signal,
            }),
        );
        response.writeHead(answer.status, Object.fromEntries(answer.headers));
        if (answer.body) {
            // Whoever leaves in the middle has left.
            Readable.fromWeb(answer.body).on("error", () => {}).pipe(response);
        } else {
            response.end();
        }
    });
    server.listen(0, "127.0.0.1", () => console.error(`listening on http://127.0.0.1:${server.address().port}`));
}
