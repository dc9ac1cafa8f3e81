// A client that has nothing of its own in mind: its job, how it tells of what happens, and what it does when
// it is told to on its standard input.

import { createInterface } from "node:readline";

export const job = JSON.parse(process.argv[2]);

export const tell = (step, what = {}) => process.stdout.write(`${JSON.stringify({ step, ...what })}\n`);

// Tells of a question, and answers it with the job's next answer.
export function elicited({ message, requestedSchema }) {
    tell("asked", { message, schema: requestedSchema });
    return job.elicits.shift();
}

// Does what each line says, one JSON object per line, until there is no more: tells of the result, whole, or of
// the error with which the SDK ended it.
export async function obey(client, _call, { callTool, sdk }) {
    const doing = {
        call: ({ name, args }) => callTool(client, { name, arguments: args }),
        tools: () => client.listTools(),
        prompts: () => client.listPrompts(),
        prompt: ({ name, args }) => client.getPrompt({ name, arguments: args }),
        resources: () => client.listResources(),
        templates: () => client.listResourceTemplates(),
        read: ({ uri }) => client.readResource({ uri }),
        // What the SDK's checker of schemas says of a value.
        judge: ({ schema, value }) => ({ valid: sdk.validator.getValidator(schema)(value).valid }),
    };
    for await (const line of createInterface({ input: process.stdin })) {
        const wish = JSON.parse(line);
        try {
            tell("did", { result: await doing[wish.do](wish) });
        } catch (error) {
            tell("failed", { error: error.message, code: error.code });
        }
    }
}
