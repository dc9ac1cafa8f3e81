// A server with the Skills extension (SEP-2640), on the official TypeScript SDK.
//
//     node skills_server.mjs stdio
//     node skills_server.mjs http    streamable HTTP, at /mcp; stderr says on which port

import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { memorySkillFiles, SkillsExtension } from "@modelcontextprotocol/server/ext/skills";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { listen } from "./fetch_http.mjs";

const manifest = (name, description) => `---\nname: ${name}\ndescription: ${description}\n---\n\n# ${name}\n`;
const skills = await SkillsExtension.load(
    memorySkillFiles({
        "changelog/SKILL.md": manifest("changelog", "Writes a changelog from commits."),
        "changelog/references/style.md": "Short sentences.\n",
        "changelog/references/words/plain.md": "Plain words.\n",
        "review/SKILL.md": manifest("review", "Reviews a change."),
    }),
    { pageSize: 1, strict: true },
);

function make() {
    const server = new McpServer({ name: "typescript-skills", version: "1.0.0" }, { capabilities: { resources: {} } });
    skills.attach(server);
    return server;
}

if (process.argv[2] === "stdio") {
    serveStdio(make);
} else {
    listen(createMcpHandler(make).fetch);
}
