// A client on @modelcontextprotocol/client, which speaks the newest revision if it is told to.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/client/validators/ajv";
import { job, run } from "./tour.mjs";

const make = (options) => {
    const versionNegotiation = { mode: job.modern ? { pin: "2026-07-28" } : "legacy" };
    const client = new Client({ name: "typescript-v2", version: "1.0.0" }, { ...options, versionNegotiation });
    const requestInit = { headers: { Authorization: `Bearer ${job.token}` } };
    const transport = job.url
        ? new StreamableHTTPClientTransport(new URL(job.url), { requestInit })
        : new StdioClientTransport({ command: job.command[0], args: job.command.slice(1) });
    return { client, transport };
};

await run(make, (client, params, options) => client.callTool(params, options), {
    answer: (client, method, handler) => client.setRequestHandler(method, async ({ params }) => handler(params)),
    validator: new AjvJsonSchemaValidator(),
});
