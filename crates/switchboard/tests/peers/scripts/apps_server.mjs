// A server with an MCP App, made with the SDK for apps: a clock that a model shows and its page keeps going.

import { registerAppResource, registerAppTool, RESOURCE_MIME_TYPE } from "@modelcontextprotocol/ext-apps/server";
import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

const PAGE = "ui://clock/page.html";

function make() {
    const server = new McpServer({ name: "clock", version: "1.0.0" });
    registerAppTool(
        server,
        "show_clock",
        { description: "Shows a clock.", _meta: { ui: { resourceUri: PAGE } } },
        async () => ({ content: [{ type: "text", text: "noon" }], structuredContent: { hour: 12 } }),
    );
    registerAppTool(
        server,
        "wind_clock",
        { description: "Winds the clock.", _meta: { ui: { resourceUri: PAGE, visibility: ["app"] } } },
        async () => ({ content: [{ type: "text", text: "wound" }] }),
    );
    registerAppResource(server, "The page", PAGE, { description: "The face of the clock." }, async () => ({
        contents: [
            {
                uri: PAGE,
                mimeType: RESOURCE_MIME_TYPE,
                text: "<!doctype html><title>Clock</title>",
                _meta: { ui: { prefersBorder: true, csp: { connectDomains: ["https://time.example"] } } },
            },
        ],
    }));
    return server;
}

serveStdio(make);
