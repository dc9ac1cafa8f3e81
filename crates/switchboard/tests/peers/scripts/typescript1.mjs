// A client on @modelcontextprotocol/sdk.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
    CreateMessageRequestSchema,
    ElicitRequestSchema,
    ListRootsRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { run } from "./tour.mjs";

const CAPABILITIES = { elicitation: {}, sampling: {}, roots: {} };
const SCHEMAS = {
    "elicitation/create": ElicitRequestSchema,
    "sampling/createMessage": CreateMessageRequestSchema,
    "roots/list": ListRootsRequestSchema,
};

const way = ({ url, sse, command, token }) => {
    const requestInit = { headers: { Authorization: `Bearer ${token}` } };
    if (url) {
        return new StreamableHTTPClientTransport(new URL(url), { requestInit });
    }
    if (sse) {
        return new SSEClientTransport(new URL(sse), { requestInit });
    }
    return new StdioClientTransport({ command: command[0], args: command.slice(1) });
};

await run((tour) => {
    const client = new Client({ name: "typescript-1", version: "1.0.0" }, { capabilities: CAPABILITIES });
    return {
        client,
        transport: way(tour),
        answer: (method, answer) =>
            client.setRequestHandler(SCHEMAS[method], async ({ params }) => answer(params)),
        call: (params, options) => client.callTool(params, undefined, options),
        level: () => client.setLoggingLevel("info"),
        listen: async (uri) => {
            await client.subscribeResource({ uri });
            return () => client.unsubscribeResource({ uri });
        },
    };
});
