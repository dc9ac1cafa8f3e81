// What a client on either TypeScript SDK does here. The two differ in how a client is made and a tool
// is called; v1.mjs and v2.mjs say how.
//
// The job comes as JSON in the first argument, what happens goes out as one JSON object per line, and
// a client that is to stay does so until its standard input is closed.

import { elicited, job, obey, tell } from "./obey.mjs";

export { job };

const text = (result) => result.content.map((part) => part.text).join("\n");
const names = (items) => items.map((item) => item.name);

// `make(options)` gives a client and its transport, `callTool(client, params, options)` calls, and
// `sdk` has the rest of what the SDKs do differently: `answer(client, method, handler)` has a server's
// question answered, `validator` is a checker of JSON schemas.
export async function run(make, callTool, sdk) {
    const news = [];
    let wake = () => {};
    const onChanged = (error, tools) => {
        news.push(error ? { error: String(error) } : { names: names(tools) });
        wake();
    };
    const capabilities = job.elicits ? { elicitation: {} } : {};
    const { client, transport } = make({ capabilities, listChanged: { tools: { onChanged } } });
    if (job.elicits) {
        sdk.answer(client, "elicitation/create", elicited);
    }
    await client.connect(transport);
    // The older SDK knows no newer revision, and does not tell which it is.
    const revision = client.getNegotiatedProtocolVersion?.() ?? "2025-11-25";
    tell("connected", { server: client.getServerVersion()?.name, revision });

    let arrived = () => {};
    const receive = transport.onmessage;
    transport.onmessage = (message, extra) => {
        arrived(message);
        receive(message, extra);
    };
    const watching = (watcher) => (arrived = watcher);
    const call = (name, args, options) =>
        callTool(client, { name: job.prefix + name, arguments: args }, options);
    const change = async () => {
        while (news.length === 0) {
            await new Promise((resolve) => (wake = resolve));
        }
        return news.shift();
    };
    const parts = { tools, progress, prompts, resources, cancel, lists, stay, watch, obey };
    for (const part of job.parts) {
        await parts[part](client, call, { change, watching, callTool, sdk });
    }
    await client.close();
    tell("closed");
}

async function tools(client, call) {
    const { tools } = await client.listTools();
    tell("tools", { names: names(tools) });
    tell("called", { text: text(await call("echo", { message: "hello" })) });
    const weather = await call("get-structured-content", { location: "Chicago" });
    tell("structured", { value: weather.structuredContent });
}

// Tells of progress as it arrives. The SDKs call a handler a moment after its message, and not any more
// once they have seen the answer: if the last progress and the answer come in one read, the handler does
// not hear of that progress.
async function progress(_client, call, { watching }) {
    watching(({ method, params }) => {
        if (method === "notifications/progress") {
            tell("progress", { progress: params.progress, total: params.total });
        }
    });
    let heard = 0;
    const options = { onprogress: () => (heard += 1) };
    const long = await call("trigger-long-running-operation", { duration: 0.5, steps: 5 }, options);
    tell("finished", { text: text(long), heard });
    watching(() => {});
}

async function prompts(client) {
    const { prompts } = await client.listPrompts();
    tell("prompts", { names: names(prompts) });
    const asked = { name: `${job.prefix}args-prompt`, arguments: { city: "Oslo" } };
    const { messages } = await client.getPrompt(asked);
    tell("prompt", { text: messages[0].content.text });
    const ref = { type: "ref/prompt", name: `${job.prefix}completable-prompt` };
    const { completion } = await client.complete({ ref, argument: { name: "department", value: "E" } });
    tell("completion", { values: completion.values });
}

async function resources(client) {
    const { resources } = await client.listResources();
    const { uri } = resources.find((resource) => resource.uri.endsWith("/architecture.md"));
    const read = await client.readResource({ uri });
    tell("resource", { asked: uri, uri: read.contents[0].uri, text: read.contents[0].text });

    const { resourceTemplates } = await client.listResourceTemplates();
    const { uriTemplate } = resourceTemplates.find(({ uriTemplate }) => uriTemplate.includes("/text/"));
    const dynamic = await client.readResource({ uri: uriTemplate.replace("{resourceId}", "7") });
    tell("template", { template: uriTemplate, text: dynamic.contents[0].text });
    const ref = { type: "ref/resource", uri: uriTemplate };
    const { completion } = await client.complete({ ref, argument: { name: "resourceId", value: "7" } });
    tell("completion", { values: completion.values });
}

// Withdraws a call that has begun, and makes another.
async function cancel(_client, call) {
    const controller = new AbortController();
    const options = { onprogress: () => controller.abort("changed my mind"), signal: controller.signal };
    try {
        await call("trigger-long-running-operation", { duration: 600, steps: 6000 }, options);
        tell("finished");
    } catch (error) {
        tell("cancelled", { error: String(error) });
    }
    tell("called", { text: text(await call("echo", { message: "still here" })) });
}

// Tells of everything that is listed, whole.
async function lists(client) {
    const { tools } = await client.listTools();
    const { prompts } = await client.listPrompts();
    const { resources } = await client.listResources();
    const { resourceTemplates } = await client.listResourceTemplates();
    tell("lists", { tools, prompts, resources, resourceTemplates });
}

// Calls, and stays until it is told to leave.
async function stay(_client, call) {
    tell("called", { text: text(await call("echo", { message: "hello" })) });
    for await (const _ of process.stdin);
}

// Tells of the tools, and of every change to them until there is one of the name `job.awaited`.
async function watch(client, _call, { change }) {
    let found = { names: names((await client.listTools()).tools) };
    tell("tools", found);
    while (!found.names?.includes(job.awaited)) {
        found = await change();
        tell("changed", found);
    }
}
