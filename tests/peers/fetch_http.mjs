// Serves a fetch handler, which is what the TypeScript SDK has, at /mcp on a free port, and says on stderr where.

import { createServer } from "node:http";
import { Readable } from "node:stream";
import {
    hostHeaderValidationResponse,
    localhostAllowedHostnames,
    localhostAllowedOrigins,
    originValidationResponse,
} from "@modelcontextprotocol/server";

export function listen(fetch) {
    const server = createServer(async (incoming, outgoing) => {
        const left = new AbortController();
        outgoing.on("close", () => left.abort());
        const request = new Request(new URL(incoming.url, "http://localhost"), {
            method: incoming.method,
            headers: Object.entries(incoming.headers),
            body: incoming.method === "POST" ? Readable.toWeb(incoming) : undefined,
            duplex: "half",
            signal: left.signal,
        });
        const response =
            hostHeaderValidationResponse(request, localhostAllowedHostnames()) ??
            originValidationResponse(request, localhostAllowedOrigins()) ??
            (await fetch(request));
        outgoing.writeHead(response.status, Object.fromEntries(response.headers));
        if (response.body) {
            // A client may leave in the middle of a stream.
            Readable.fromWeb(response.body).on("error", () => {}).pipe(outgoing);
        } else {
            outgoing.end();
        }
    });
    server.listen(0, "127.0.0.1", () => console.error(`listening on http://127.0.0.1:${server.address().port}`));
}
