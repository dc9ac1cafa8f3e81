// A client whose user opens pages, on either TypeScript SDK.
//
//     node - SDK URL TOKEN ACTION < opener.mjs
//
// SDK is `sdk`, which speaks 2025-11-25, or `client`, which speaks 2026-07-28. ACTION is the answer of its user, `accept`
// or `decline`. The client calls a tool until there is a result. It prints every address that it is asked to open, once,
// and at last the result or the error.

import { setTimeout as sleep } from "node:timers/promises";

const [sdk, url, token, action] = process.argv.slice(2);
const isOld = sdk === "sdk";
const { Client } = await import(isOld ? "@modelcontextprotocol/sdk/client/index.js" : "@modelcontextprotocol/client");
const { StreamableHTTPClientTransport } = await import(
    isOld ? "@modelcontextprotocol/sdk/client/streamableHttp.js" : "@modelcontextprotocol/client"
);

const tell = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
const opened = new Set();
const open = ({ url, message }) => {
    if (!opened.has(url)) tell({ url, message });
    opened.add(url);
};

const capabilities = { elicitation: { url: {} } };
const versionNegotiation = isOld ? undefined : { mode: { pin: "2026-07-28" } };
const client = new Client({ name: sdk, version: "1.0.0" }, { capabilities, versionNegotiation });
if (!isOld) {
    client.setRequestHandler("elicitation/create", async ({ params }) => {
        open(params);
        return { action };
    });
}
const requestInit = { headers: { Authorization: `Bearer ${token}` } };
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
for (;;) {
    try {
        const { content } = await client.callTool({ name: "notes__add", arguments: { a: 1, b: 2 } });
        tell({ text: content[0].text });
        break;
    } catch (error) {
        if (error.code !== -32042) {
            tell({ code: error.code, error: error.message });
            break;
        }
        error.elicitations.forEach(open);
        await sleep(200);
    }
}
process.exit(0);
