"""A server that does what a file says: which tools there are, and what each asks and answers.

{"tools": [...], "instructions": "...", "does": {TOOL: {"says": [lines for standard error],
 "asks": [[METHOD, PARAMS], ...], "result": {...} or "error": {...}}}}

What it is called with and how its questions are answered goes into a log, a JSON object on each line.
"""
import json
import sys

plan_file, log_file = sys.argv[1:3]
asked = 0


def plan():
    with open(plan_file) as file:
        return json.load(file)


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def note(**what):
    with open(log_file, "a") as log:
        log.write(json.dumps(what) + "\n")


def ask(method, params):
    global asked
    asked += 1
    name = f"q{asked}"
    send({"id": name, "method": method, "params": params})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == name and "method" not in message:
            return message.get("result", {"error": message.get("error")})
        hear(message)
    sys.exit()


def call(params):
    name = params["name"]
    does = plan().get("does", {}).get(name, {})
    note(called=name, arguments=params.get("arguments"))
    for line in does.get("says", []):
        print(line, file=sys.stderr, flush=True)
    for method, question in does.get("asks", []):
        note(asked=method, answer=ask(method, question))
    if "error" in does:
        return {"error": does["error"]}
    return {"result": does.get("result", {"content": [{"type": "text", "text": "done"}]})}


def hear(message):
    if "id" not in message or "method" not in message:
        return
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        about = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                 "serverInfo": {"name": "asks", "version": "1"}}
        if "instructions" in plan():
            about["instructions"] = plan()["instructions"]
        answer = {"result": about}
    elif method == "tools/list":
        answer = {"result": {"tools": plan()["tools"]}}
    elif method == "tools/call":
        answer = call(params)
    elif method == "ping":
        answer = {"result": {}}
    else:
        answer = {"error": {"code": -32601, "message": "no such method"}}
    send({"id": message["id"], **answer})


for line in sys.stdin:
    hear(json.loads(line))
