// What a client on either TypeScript SDK does here. The two differ in how a client is made, and in how
// it is told of logs and news; typescript1.mjs and typescript2.mjs say how.
//
// The job comes as JSON in the first argument: tours, one after the other, each by a client of its own.
// What each part of a tour finds goes out as one JSON object per line; a part that fails says so, and the
// tour goes on, so that one run shows all that is wrong.

const job = JSON.parse(process.argv[2]);
const PATIENCE = 30_000;

const text = (result) => result.content.map((part) => part.text).join("\n");
const names = (items) => items.map((item) => item.name).sort();

// `make(tour)` gives a client of a kind that has these members:
//   client, transport          what the SDK has
//   call(params, options)      calls a tool
//   listen(uri)                has updates of the resource sent, and gives what ends that
//   level()                    has log messages sent
export async function run(make) {
    for (const tour of job.tours) {
        const tell = (part, what) =>
            process.stdout.write(`${JSON.stringify({ tour: tour.name, part, ...what })}\n`);
        const attempt = async (part, doing) => {
            let timer;
            const late = new Promise((_, reject) => {
                timer = setTimeout(() => reject(new Error("nothing happened")), PATIENCE);
            });
            try {
                tell(part, { value: await Promise.race([doing(), late]) });
            } catch (error) {
                tell(part, { error: `${error?.message ?? error}`, code: error?.code });
            } finally {
                clearTimeout(timer);
            }
        };
        const peer = make(tour);
        answerQuestions(peer);
        // Messages are looked at as they arrive: the SDKs call a handler a moment later, and not any more
        // once they have seen the answer.
        peer.heard = [];
        peer.wake = () => {};
        peer.transport.onmessage = (message) => {
            peer.heard.push(message);
            peer.wake();
        };
        await attempt("connect", async () => {
            await peer.client.connect(peer.transport);
            // The older SDK keeps to itself which revision it speaks.
            const initialized = peer.heard.find(({ result }) => result?.protocolVersion);
            return initialized?.result.protocolVersion ?? peer.client.getNegotiatedProtocolVersion();
        });
        for (const part of tour.parts) {
            await attempt(part, () => parts[part](peer, tour));
        }
        await attempt("close", async () => {
            await peer.client.close();
            return null;
        });
    }
    process.exit(0); // whatever a part that failed has left behind
}

const call = (peer, name, args, options) => peer.call({ name, arguments: args }, options);

// Waits until a message with this method has come since `from`.
async function news(peer, method, from) {
    for (;;) {
        const found = peer.heard.slice(from).find((message) => message.method === method);
        if (found) {
            return found;
        }
        await new Promise((resolve) => (peer.wake = resolve));
    }
}

const heardOf = (peer, method, from) => peer.heard.slice(from).filter((message) => message.method === method);

const parts = {
    async tools({ client }) {
        const { tools } = await client.listTools();
        return names(tools).filter((name) => !name.startsWith("learnt"));
    },
    async call(peer) {
        const sum = await call(peer, "add", { a: 2, b: 3 });
        const failed = await call(peer, "fail", { message: "no luck" });
        return [text(sum), failed.isError === true, text(failed).split(": ").pop()];
    },
    async progress(peer) {
        const from = peer.heard.length;
        const result = await call(peer, "count", { to: 3 }, { onprogress: () => {} });
        const heard = heardOf(peer, "notifications/progress", from);
        return [...heard.map(({ params }) => [params.progress, params.total, params.message]), text(result)];
    },
    async log(peer) {
        await peer.level();
        const from = peer.heard.length;
        const result = await call(peer, "log", { message: "hello" });
        await news(peer, "notifications/message", from);
        const heard = heardOf(peer, "notifications/message", from);
        return [...heard.map(({ params }) => [params.level, params.logger, params.data]), text(result)];
    },
    async ask(peer) {
        const accepted = await call(peer, "ask", { question: "Who are you?" });
        const declined = await call(peer, "ask", { question: "Will you decline?" });
        return [text(accepted), text(declined)];
    },
    async sample(peer) {
        return text(await call(peer, "sample", { prompt: "The capital of France?" }));
    },
    async roots(peer) {
        return text(await call(peer, "roots", {}));
    },
    async prompts({ client }) {
        const { prompts } = await client.listPrompts();
        const { messages } = await client.getPrompt({ name: "greet", arguments: { name: "Ada" } });
        return [names(prompts), messages[0].content.text];
    },
    async resources({ client }) {
        const { resources } = await client.listResources();
        const about = await client.readResource({ uri: "peer://about" });
        const { resourceTemplates } = await client.listResourceTemplates();
        const note = await client.readResource({ uri: "note://greeting" });
        return [
            resources.map(({ uri }) => uri),
            about.contents[0].text,
            resourceTemplates.map(({ uriTemplate }) => uriTemplate),
            note.contents[0].text,
        ];
    },
    async update(peer, { tag }) {
        const uri = `note://${tag}`;
        await call(peer, "set_note", { name: tag, text: "old" });
        const end = await peer.listen(uri);
        const from = peer.heard.length;
        await call(peer, "set_note", { name: tag, text: "new" });
        const told = await news(peer, "notifications/resources/updated", from);
        const read = await peer.client.readResource({ uri });
        await end();
        return [told.params.uri, read.contents[0].text];
    },
    async change(peer, { tag }) {
        const from = peer.heard.length;
        await call(peer, "learn", { name: `learnt-${tag}` });
        await news(peer, "notifications/tools/list_changed", from);
        const { tools } = await peer.client.listTools();
        return names(tools).includes(`learnt-${tag}`);
    },
    async cancel(peer) {
        const controller = new AbortController();
        const options = { onprogress: () => controller.abort("changed my mind"), signal: controller.signal };
        const ended = await call(peer, "sleep", { seconds: 600 }, options).then(text, () => "withdrawn");
        return [ended, text(await call(peer, "add", { a: 2, b: 3 }))];
    },
};

// How the client's user answers.
export const answers = {
    elicit: ({ message }) =>
        message.includes("decline") ? { action: "decline" } : { action: "accept", content: { name: "Ada" } },
    sample: () => ({
        model: "tester",
        role: "assistant",
        content: { type: "text", text: "Paris" },
        stopReason: "endTurn",
    }),
    roots: () => ({ roots: [{ uri: "file:///tour", name: "tour" }] }),
};

const answerQuestions = ({ answer }) => {
    answer("elicitation/create", answers.elicit);
    answer("sampling/createMessage", answers.sample);
    answer("roots/list", answers.roots);
};
