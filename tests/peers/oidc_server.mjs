// An MCP server on @modelcontextprotocol/sdk that requires tokens, and its authorization server, oidc-provider.
//
//     node oidc_server.mjs LIFETIME [strict]
//
// LIFETIME is that of access tokens, in seconds. A strict server demands tokens that are bound to a key, with a nonce in each
// proof for the authorization server, which assumes no resource that a client does not name. Clients register themselves; PKCE, resource indicators and the rotation of
// refresh tokens are required. The page of the authorization server asks for consent with one button. On stderr it says
// where it listens, and /book counts what the authorization server saw.

import { createPublicKey, hash, verify } from "node:crypto";
import { createServer } from "node:http";
import { setTimeout } from "node:timers/promises";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import express from "express";
import { Provider } from "oidc-provider";
import { z } from "zod";

const lifetime = Number(process.argv[2] ?? 3600);
const isStrict = process.argv[3] === "strict";
const grants = new Set();
const issued = new Set();
const book = { isDown: false, isSlow: false, holdsTokens: false, refusesAll: false, pending: 0, codes: 0, devices: 0, refreshes: 0, reused: 0, revoked: 0, refused: 0, errors: [], tokens: [] };

const app = express();
const http = createServer(app);
http.listen(0, "127.0.0.1");
await new Promise((resolve) => http.once("listening", resolve));
const origin = `http://127.0.0.1:${http.address().port}`;
const resource = `${origin}/mcp`;

const provider = new Provider(`${origin}/oidc`, {
    cookies: { keys: ["a key for tests"] },
    features: {
        deviceFlow: { enabled: true },
        devInteractions: { enabled: false },
        dPoP: { enabled: true, ...(isStrict && { nonceSecret: Buffer.alloc(32, 7), requireNonce: () => true }) },
        registration: { enabled: true },
        revocation: { enabled: true },
        resourceIndicators: {
            enabled: true,
            ...(!isStrict && { defaultResource: () => resource, useGrantedResource: () => true }),
            getResourceServerInfo: () => ({
                scope: "mcp",
                audience: resource,
                accessTokenFormat: "opaque",
                accessTokenTTL: lifetime,
            }),
        },
    },
    pkce: { required: () => true },
    scopes: ["openid", "offline_access"],
    rotateRefreshToken: true,
    issueRefreshToken: (_, client) => client.grantTypeAllowed("refresh_token"),
    interactions: { url: (_, { uid }) => `/consent/${uid}` },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    ttl: { AccessToken: lifetime, Grant: 86_400, Interaction: 600, Session: 86_400, RefreshToken: 86_400 },
});
provider.on("grant.success", (context) => {
    const { grant_type: type } = context.oidc.params;
    book.codes += Number(type === "authorization_code");
    book.devices += Number(type.endsWith(":device_code"));
    book.refreshes += Number(type === "refresh_token");
    book.tokens.push(context.body.access_token, context.body.refresh_token);
    issued.add(context.body.access_token);
});
provider.on("grant.error", (_, error) => {
    book.errors.push(error.error_detail ?? error.message);
    book.reused += Number(error.error_detail === "refresh token already used");
});
provider.on("grant.revoked", () => {
    book.revoked += 1;
});
provider.on("server_error", (_, error) => console.error(error));

app.post("/revoke-all", async (_, response) => {
    await Promise.all([...grants].map((id) => provider.Grant.adapter.destroy(id)));
    response.json({});
});
app.post("/expire", async (_, response) => {
    for (const token of issued) await (await provider.AccessToken.find(token))?.destroy();
    issued.clear();
    response.json({});
});
app.post("/toggle/:fault", ({ params }, response) => {
    book[params.fault] = !book[params.fault];
    response.json({});
});
app.get("/book", (_, response) => response.json(book));
app.get("/consent/:uid", async (request, response) => {
    const { uid, params } = await provider.interactionDetails(request, response);
    const asked = `Let the client use ${params.scope ?? "nothing"}?`;
    response.send(`<!doctype html><title>Consent</title><link rel="icon" href="data:,"><p>${asked}</p>
        <form method="post" action="/consent/${uid}"><button name="answer" value="yes">Allow</button>
        <button name="answer" value="no">Deny</button></form>`);
});
app.post("/consent/:uid", express.urlencoded({ extended: false }), async (request, response) => {
    const { params, session, grantId } = await provider.interactionDetails(request, response);
    if (request.body.answer !== "yes") {
        const denied = { error: "access_denied", error_description: "Ada said no" };
        return provider.interactionFinished(request, response, denied);
    }
    const accountId = session?.accountId ?? "ada";
    const grant =
        (grantId && (await provider.Grant.find(grantId))) ||
        new provider.Grant({ accountId, clientId: params.client_id });
    grant.addOIDCScope("openid offline_access");
    grant.addResourceScope(resource, "mcp");
    const saved = await grant.save();
    grants.add(saved);
    const result = { login: { accountId }, consent: { grantId: saved } };
    return provider.interactionFinished(request, response, result);
});
app.use("/oidc/token", (_, response, next) => {
    if (book.isDown) return response.status(503).end();
    const end = response.end.bind(response);
    // By now the tokens are issued, and the refresh token is used.
    response.end = (...body) => {
        book.pending += 1;
        answered().then(() => {
            book.pending -= 1;
            end(...body);
        });
        return response;
    };
    next();
});
async function answered() {
    if (book.isSlow) await setTimeout(Math.random() * 300);
    while (book.holdsTokens) await setTimeout(5);
}
app.use("/oidc", provider.callback());

app.get("/.well-known/oauth-protected-resource/mcp", (_, response) =>
    response.json({
        resource,
        authorization_servers: [provider.issuer],
        scopes_supported: ["mcp"],
        bearer_methods_supported: ["header"],
    }),
);
function isProven(request, sent, token) {
    const [head, body, signature] = (request.get("DPoP") ?? "").split(".");
    if (!signature) return false;
    const [{ typ, jwk }, { htm, htu, ath }] = [head, body].map((part) => JSON.parse(Buffer.from(part, "base64url")));
    const key = { key: createPublicKey({ key: jwk, format: "jwk" }), dsaEncoding: "ieee-p1363" };
    const { crv, kty, x, y } = jwk;
    return (
        verify("sha256", Buffer.from(`${head}.${body}`), key, Buffer.from(signature, "base64url")) &&
        [typ, htm, htu].join() === ["dpop+jwt", request.method, resource].join() &&
        ath === hash("sha256", sent, "base64url") &&
        token.jkt === hash("sha256", JSON.stringify({ crv, kty, x, y }), "base64url")
    );
}
app.all("/mcp", express.json(), async (request, response) => {
    const scheme = isStrict ? "DPoP" : "Bearer";
    const [, sent] = new RegExp(`^${scheme} (.*)$`).exec(request.headers.authorization ?? "") ?? [];
    const token = sent && (await provider.AccessToken.find(sent));
    const isGranted =
        token?.isValid &&
        (!isStrict || isProven(request, sent, token)) &&
        (await provider.Grant.find(token.grantId));
    if (book.refusesAll || !isGranted || token.aud !== resource) {
        book.refused += Number(Boolean(sent));
        const metadata = `${origin}/.well-known/oauth-protected-resource/mcp`;
        const error = sent ? 'error="invalid_token", ' : "";
        response.set("WWW-Authenticate", `${scheme} ${error}resource_metadata="${metadata}"`);
        return response.status(401).json({ error: "invalid_token" });
    }
    if (request.method !== "POST") return response.status(405).end();
    const server = new McpServer({ name: "signed-in", version: "1.0.0" });
    const call = ({ a, b }) => ({ content: [{ type: "text", text: `${a + b} for ${token.accountId}` }] });
    server.registerTool("add", { description: "Adds.", inputSchema: { a: z.number(), b: z.number() } }, call);
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    response.on("close", () => {
        transport.close();
        server.close();
    });
    await server.connect(transport);
    return transport.handleRequest(request, response, request.body);
});
console.error(`listening on ${origin}`);
