// A client on @modelcontextprotocol/client, which speaks the newest revision if it is told to.

import { Client, SSEClientTransport, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { run } from "./tour.mjs";

const LOG_LEVEL = "io.modelcontextprotocol/logLevel";
const CAPABILITIES = { elicitation: {}, sampling: {}, roots: {} };

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
    const client = new Client(
        { name: "typescript-2", version: "1.0.0" },
        {
            capabilities: CAPABILITIES,
            versionNegotiation: { mode: tour.modern ? { pin: "2026-07-28" } : "legacy" },
            // With this, the SDK listens for changed lists in the newest revision.
            listChanged: { tools: { autoRefresh: false, onChanged: () => {} } },
        },
    );
    let meta = {};
    return {
        client,
        transport: way(tour),
        answer: (method, answer) => client.setRequestHandler(method, async ({ params }) => answer(params)),
        call: (params, options) => client.callTool({ ...params, ...meta }, options),
        level: async () => {
            if (tour.modern) {
                meta = { _meta: { [LOG_LEVEL]: "info" } };
            } else {
                await client.setLoggingLevel("info");
            }
        },
        listen: async (uri) => {
            if (tour.modern) {
                const subscription = await client.listen({ resourceSubscriptions: [uri] });
                return () => subscription.close();
            }
            await client.subscribeResource({ uri });
            return () => client.unsubscribeResource({ uri });
        },
    };
});
