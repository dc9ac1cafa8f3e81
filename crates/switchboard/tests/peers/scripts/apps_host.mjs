// A host of MCP Apps: finds the page of a tool, reads it, and calls tools as a model and as the page would.
//
//     node apps_host.mjs ERA stdio COMMAND…
//     node apps_host.mjs ERA http URL TOKEN

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { getToolUiResourceUri, isToolVisibilityAppOnly, RESOURCE_MIME_TYPE } from "@modelcontextprotocol/ext-apps/app-bridge";

const [era, kind, ...words] = process.argv.slice(2);

function way() {
    if (kind === "stdio") {
        return new StdioClientTransport({ command: words[0], args: words.slice(1), env: process.env });
    }
    const [url, token] = words;
    return new StreamableHTTPClientTransport(new URL(url), {
        requestInit: { headers: { Authorization: `Bearer ${token}` } },
    });
}

const client = new Client(
    { name: "host", version: "1.0.0" },
    {
        capabilities: { extensions: { "io.modelcontextprotocol/ui": { mimeTypes: [RESOURCE_MIME_TYPE] } } },
        versionNegotiation: { mode: era === "modern" ? { pin: "2026-07-28" } : "legacy" },
    },
);
await client.connect(way());
const { tools } = await client.listTools();
const shown = tools.find((tool) => tool.name.endsWith("show_clock"));
const hidden = tools.find((tool) => tool.name.endsWith("wind_clock"));
const uri = getToolUiResourceUri(shown);
const { contents } = await client.readResource({ uri });
const { resources } = await client.listResources();
const [page] = contents;
const result = await client.callTool({ name: shown.name, arguments: {} });
// The page knows its tool by the name that the server gives it.
const own = await client.callTool({ name: "wind_clock", arguments: {} });
console.log(
    JSON.stringify({
        page: { ...page, uri: page.uri === uri },
        isListed: resources.some((resource) => resource.uri === uri),
        isHidden: isToolVisibilityAppOnly(hidden),
        hasOnePage: getToolUiResourceUri(hidden) === uri,
        results: [result, own].map(({ content, structuredContent }) => ({ content, structuredContent })),
    }),
);
await client.close();
