#!/usr/bin/env python3
"""A small MCP server over stdio, for compare.py.

It speaks revision 2025-06-18: one JSON-RPC message per line. The tool `echo` returns
its text, the tool `hang` never answers, and further tools fill the list.
"""

import argparse
import json
import os
import subprocess
import sys
import time

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18")


def tool(name, description):
    """A tool definition of about the size that real servers have."""
    return {
        "name": name,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "The text to work on."},
                "limit": {"type": "integer", "description": "The most entries to return.", "minimum": 1},
                "format": {
                    "type": "string",
                    "enum": ["plain", "markdown", "json"],
                    "description": "The format of the result.",
                },
            },
            "required": ["text"],
        },
    }


def tools(options):
    """The list of tools: echo, hang, then as many others as the options ask for."""
    description = "Returns the text that it is given."
    if options.description:
        with open(options.description, encoding="utf-8") as file:
            description = file.read().strip()
    filler = "Looks up entries of the project and returns those that match the text, the newest first, up to the limit."
    listed = [tool("echo", description), tool("hang", "Never answers.")]
    for number in range(len(listed), options.tools):
        listed.append(tool(f"find{number}", f"{filler} Part {number} of {options.name}."))
    return listed[: options.tools]


def answer(request, listed):
    """The response to one request, or None if the tool `hang` was called."""
    method, params = request["method"], request.get("params") or {}
    if method == "initialize":
        asked = params.get("protocolVersion")
        result = {
            "protocolVersion": asked if asked in REVISIONS else REVISIONS[-1],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "compare", "version": "1.0.0"},
        }
    elif method == "ping":
        result = {}
    elif method == "tools/list":
        result = {"tools": listed}
    elif method == "tools/call":
        if params["name"] == "hang":
            return None
        text = params.get("arguments", {}).get("text", "")
        result = {"content": [{"type": "text", "text": text}]}
    else:
        error = {"code": -32601, "message": f"method not found: {method}"}
        return {"jsonrpc": "2.0", "id": request["id"], "error": error}
    return {"jsonrpc": "2.0", "id": request["id"], "result": result}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", default="server", help="the name in the descriptions of its tools")
    parser.add_argument("--tools", type=int, default=3, help="the number of tools")
    parser.add_argument("--delay", type=float, default=0, help="seconds that the start takes")
    parser.add_argument("--description", help="a file with the description of the tool echo")
    parser.add_argument("--pids", help="a file to which it appends the IDs of its processes")
    parser.add_argument("--helper", action="store_true", help="start a helper process, as a browser server does")
    parser.add_argument("--ignore-eof", action="store_true", help="stay when standard input ends")
    options = parser.parse_args()

    pids = [os.getpid()]
    if options.helper:
        helper = subprocess.Popen(
            ["sleep", "600"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        pids.append(helper.pid)
    if options.pids:
        with open(options.pids, "a", encoding="utf-8") as file:
            file.write("".join(f"{pid}\n" for pid in pids))

    time.sleep(options.delay)
    listed = tools(options)
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" in message and "method" in message:
            response = answer(message, listed)
            if response is not None:
                sys.stdout.buffer.write(json.dumps(response).encode() + b"\n")
                sys.stdout.buffer.flush()
    if options.ignore_eof:
        time.sleep(600)


if __name__ == "__main__":
    main()
