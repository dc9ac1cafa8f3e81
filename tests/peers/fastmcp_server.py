"""A server on fastmcp, with most of the tools of mcp_server.py, under the same names.

    python fastmcp_server.py stdio
    python fastmcp_server.py http [PORT]   streamable HTTP, at /mcp
    python fastmcp_server.py sse [PORT]    HTTP+SSE of 2024-11-05, at /sse

Without a port it takes a free one; the line "Uvicorn running on http://127.0.0.1:PORT" on stderr names it.
"""

import sys

import anyio
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    LoggingLevel,
    SamplingMessage,
    TextContent,
)

server = FastMCP("fastmcp-peer", version="1.0.0", instructions="A peer for tests.")
notes = {"greeting": "hello"}
NAME_SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@server.tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool
def fail(message: str) -> str:
    """Fails with the message."""
    raise ToolError(message)


@server.tool
async def count(ctx: Context, to: int, delay: float = 0.0) -> str:
    """Counts up, reporting progress at each step."""
    for step in range(1, to + 1):
        await anyio.sleep(delay)
        await ctx.report_progress(step, to, f"step {step}")
    return f"counted to {to}"


@server.tool
async def sleep(ctx: Context, seconds: float) -> str:
    """Sleeps; says on stderr and as progress that it began, and on stderr if it was cancelled."""
    print("sleep began", file=sys.stderr, flush=True)
    try:
        await ctx.report_progress(0, seconds, "asleep")
        await anyio.sleep(seconds)
    except anyio.get_cancelled_exc_class():
        print("sleep was cancelled", file=sys.stderr, flush=True)
        raise
    return "awake"


@server.tool
async def log(ctx: Context, message: str, level: LoggingLevel = "info") -> str:
    """Sends a log message."""
    await ctx.log(message, level=level, logger_name="peer")
    return "logged"


@server.tool
async def ask(ctx: Context, question: str) -> str | InputRequiredResult:
    """Asks the user for a name."""
    params = ElicitRequestFormParams(message=question, requested_schema=NAME_SCHEMA)
    if is_modern(ctx):
        answer = (ctx.input_responses or {}).get("name")
        if answer is None:
            return InputRequiredResult(input_requests={"name": ElicitRequest(params=params)})
    else:
        answer = await ctx.session.elicit(question, NAME_SCHEMA, related_request_id=ctx.request_id)
    assert isinstance(answer, ElicitResult)
    return f"accept: {answer.content['name']}" if answer.action == "accept" else answer.action


@server.tool
async def sample(ctx: Context, prompt: str) -> str | InputRequiredResult:
    """Asks the client's model."""
    messages = [SamplingMessage(role="user", content=TextContent(type="text", text=prompt))]
    if is_modern(ctx):
        answer = (ctx.input_responses or {}).get("answer")
        if answer is None:
            request = CreateMessageRequest(params=CreateMessageRequestParams(messages=messages, max_tokens=100))
            return InputRequiredResult(input_requests={"answer": request})
    else:
        answer = await ctx.session.create_message(messages, max_tokens=100, related_request_id=ctx.request_id)
    assert isinstance(answer, CreateMessageResult)
    return f"{answer.model}: {answer.content.text}"


@server.tool
async def roots(ctx: Context) -> str | InputRequiredResult:
    """Lists the client's roots."""
    if is_modern(ctx):
        answer = (ctx.input_responses or {}).get("roots")
        if answer is None:
            return InputRequiredResult(input_requests={"roots": ListRootsRequest()})
    else:
        answer = await ctx.session.list_roots()
    assert isinstance(answer, ListRootsResult)
    return "\n".join(str(root.uri) for root in answer.roots)


@server.resource("note://{name}", mime_type="text/plain")
def note(name: str) -> str:
    """A note."""
    return notes[name]


@server.resource("peer://about", mime_type="text/plain")
def about() -> str:
    """About this server."""
    return "a peer for tests"


@server.prompt
def greet(name: str) -> str:
    """Greets someone."""
    return f"Say hello to {name}."


def is_modern(ctx: Context) -> bool:
    """Whether the client speaks a revision without requests from the server."""
    return ctx.request_context.protocol_version >= "2026-07-28"


def main(transport: str, port: str = "0") -> None:
    """Runs the server."""
    if transport == "stdio":
        server.run("stdio", show_banner=False)
    else:
        server.run(transport, show_banner=False, host="127.0.0.1", port=int(port))


if __name__ == "__main__":
    main(*sys.argv[1:])
