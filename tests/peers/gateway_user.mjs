// A user of the gateway in the sign-ins of the conformance suite: adds the server of the suite to a new gateway, calls its
// tools, and signs in whenever a call fails, with consent to everything.
//
//     node gateway_user.mjs SWITCHBOARD URL
//
// SWITCHBOARD is the program. The suite adds the URL of its server, sets MCP_CONFORMANCE_SCENARIO, and for some scenarios
// MCP_CONFORMANCE_CONTEXT, the client that is registered.

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

const SIGN_INS = 6;

const [program, url] = process.argv.slice(2);
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? "";
if (!scenario.startsWith("auth/")) process.exit(0);

const client = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");
const oauth = client.client_id
    ? {
          clientId: client.client_id,
          clientSecret: client.client_secret && "${env:CLIENT_SECRET}",
          privateKey: client.private_key_pem && "${env:PRIVATE_KEY}",
          issuer: client.issuer,
      }
    : { clientMetadataUrl: "https://conformance-test.local/client-metadata.json" };
if (scenario.startsWith("auth/client-credentials")) oauth.grant = "client_credentials";

const home = await mkdtemp(join(tmpdir(), "sb-"));
const token = client.valid_jwt ?? client.idp_id_token;
const tokenFile = join(home, "token");
if (token) await writeFile(tokenFile, token, { mode: 0o600 });
if (client.valid_jwt) Object.assign(oauth, { grant: "jwt_bearer", assertionFile: tokenFile });
if (client.idp_id_token) {
    oauth.identityProvider = { tokenUrl: client.idp_token_endpoint, clientId: client.idp_client_id, idTokenFile: tokenFile };
}
const config = { listen: "127.0.0.1:0", memory: { enabled: false }, mcpServers: { suite: { url, oauth, start: "eager" } } };
await writeFile(join(home, "switchboard.json"), JSON.stringify(config));
const env = { ...process.env, CLIENT_SECRET: client.client_secret ?? "", PRIVATE_KEY: client.private_key_pem ?? "" };

const gateway = spawn(program, ["--home", home, "serve"], { env, stdio: ["ignore", "ignore", "inherit"] });

// Runs a command to its end.
const run = (...args) =>
    new Promise((resolve) => {
        execFile(program, ["--home", home, ...args], { env }, (error, stdout, stderr) => {
            if (error) console.error(`${args.join(" ")}: ${stderr}`);
            resolve({ isOk: !error, stdout });
        });
    });

// Waits until the server can be used, or does not start.
async function settled() {
    while (gateway.exitCode === null) {
        const { isOk, stdout } = await run("status", "--json");
        const server = isOk && JSON.parse(stdout).servers.find(({ name }) => name === "suite");
        if (server && !["idle", "starting", "retrying"].includes(server.state)) return server;
        await sleep(50);
    }
    throw new Error("the gateway has ended");
}

// Calls all tools of the server.
async function useTools() {
    if ((await settled()).state !== "ready") return false;
    const { stdout } = await run("tools", "suite", "--json");
    for (const { tool } of JSON.parse(stdout).tools) {
        if (!(await run("call", `suite:${tool}`, "{}")).isOk) return false;
    }
    return true;
}

// Signs in. The suite's page consents at once, and sends the browser back.
async function signIn() {
    const login = spawn(program, ["--home", home, "login", "suite", "--no-browser"], {
        env,
        stdio: ["pipe", "pipe", "inherit"],
    });
    const ended = once(login, "exit");
    createInterface(login.stdout).once("line", (line) => fetch(line).catch(console.error));
    const [code] = await ended;
    return code === 0;
}

let isDone = false;
for (let signIns = 0; !(isDone = await useTools()) && signIns < SIGN_INS; signIns += 1) {
    if (!(await signIn())) break;
}
const ended = once(gateway, "exit");
gateway.kill();
await ended;
await rm(home, { recursive: true });
process.exit(isDone ? 0 : 1);
