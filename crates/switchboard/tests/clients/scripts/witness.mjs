// Loaded into a server before its own code: writes down that the process started, and every message
// that the server is given, in the file that WITNESS names.

import { appendFileSync } from "node:fs";

const note = (line) => appendFileSync(process.env.WITNESS, `${line}\n`);
note(JSON.stringify({ started: process.pid }));

let rest = "";
const emit = process.stdin.emit;
process.stdin.emit = function (event, ...args) {
    if (event === "data") {
        const lines = (rest + args[0]).split("\n");
        rest = lines.pop();
        lines.forEach(note);
    }
    return emit.call(this, event, ...args);
};
