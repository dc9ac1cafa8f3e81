// A client on @modelcontextprotocol/sdk.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/sdk/validation/ajv";
import { job, run } from "./tour.mjs";

const make = (options) => {
    const client = new Client({ name: "typescript-v1", version: "1.0.0" }, options);
    const requestInit = { headers: { Authorization: `Bearer ${job.token}` } };
    const transport = job.url
        ? new StreamableHTTPClientTransport(new URL(job.url), { requestInit })
        : new StdioClientTransport({ command: job.command[0], args: job.command.slice(1) });
    return { client, transport };
};

const SCHEMAS = { "elicitation/create": ElicitRequestSchema };
await run(make, (client, params, options) => client.callTool(params, undefined, options), {
    answer: (client, method, handler) =>
        client.setRequestHandler(SCHEMAS[method], async ({ params }) => handler(params)),
    validator: new AjvJsonSchemaValidator(),
});
