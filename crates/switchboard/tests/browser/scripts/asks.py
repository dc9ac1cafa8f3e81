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


def ask(questions):
    """Asks all of them at once, and waits for all answers."""
    global asked
    open_questions = {}
    for method, params in questions:
        asked += 1
        open_questions[f"q{asked}"] = method
        send({"id": f"q{asked}", "method": method, "params": params})
    while open_questions:
        line = sys.stdin.readline()
        if not line:
            sys.exit()
        message = json.loads(line)
        if "method" not in message and message.get("id") in open_questions:
            method = open_questions.pop(message["id"])
            note(asked=method, answer=message.get("result", {"error": message.get("error")}))
        else:
            hear(message)


def call(params):
    name = params["name"]
    does = plan().get("does", {}).get(name, {})
    note(called=name, arguments=params.get("arguments"))
    for line in does.get("says", []):
        print(line, file=sys.stderr, flush=True)
    ask(does.get("asks", []))
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


while line := sys.stdin.readline():
    hear(json.loads(line))
