"""A server on the official Python SDK, which speaks the handshake revisions and 2026-07-28.

    python mcp_server.py stdio
    python mcp_server.py http [PORT]   streamable HTTP, at /mcp
    python mcp_server.py sse [PORT]    HTTP+SSE of 2024-11-05, at /sse

Without a port it takes a free one; the line "Uvicorn running on http://127.0.0.1:PORT" on stderr names it.
"""

import sys
from typing import Annotated

import anyio
from mcp.server.mcpserver import (
    Context,
    Elicit,
    ElicitationResult,
    ListRoots,
    MCPServer,
    Resolve,
    Sample,
)
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CreateMessageResult, ListRootsResult, LoggingLevel, SamplingMessage, TextContent
from pydantic import BaseModel

server = MCPServer("mcp-peer", version="1.0.0", instructions="A peer for tests.")
notes = {"greeting": "hello"}


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def fail(message: str) -> str:
    """Fails with the message."""
    raise ToolError(message)


@server.tool()
async def count(ctx: Context, to: int, delay: float = 0.0) -> str:
    """Counts up, reporting progress at each step."""
    for step in range(1, to + 1):
        await anyio.sleep(delay)
        await ctx.report_progress(step, to, f"step {step}")
    return f"counted to {to}"


@server.tool()
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


@server.tool()
async def log(ctx: Context, message: str, level: LoggingLevel = "info") -> str:
    """Sends a log message."""
    await ctx.log(level, message, logger_name="peer")
    return "logged"


@server.tool()
async def set_note(ctx: Context, name: str, text: str) -> str:
    """Changes the resource note://NAME, and tells those subscribed to it."""
    notes[name] = text
    await ctx.notify_resource_updated(f"note://{name}")
    return "set"


@server.tool()
async def learn(ctx: Context, name: str) -> str:
    """Adds a tool of that name, and tells that the list changed."""
    server.add_tool(lambda: name, name=name, description="A tool that was learnt.")
    await ctx.notify_tools_changed()  # tells those who listen, as of 2026-07-28
    if ctx.request_context.protocol_version < "2026-07-28":
        await ctx.session.send_tool_list_changed()
    return f"learnt {name}"


class Name(BaseModel):
    """What `ask` wants to know."""

    name: str


def ask_name(question: str) -> Elicit[Name]:
    """Asks the user."""
    return Elicit(question, Name)


@server.tool()
def ask(question: str, answer: Annotated[ElicitationResult[Name], Resolve(ask_name)]) -> str:
    """Asks the user for a name."""
    return f"accept: {answer.data.name}" if answer.action == "accept" else answer.action


def complete_prompt(prompt: str) -> Sample:
    """Asks the client's model."""
    message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
    return Sample([message], max_tokens=100)


@server.tool()
def sample(prompt: str, answer: Annotated[CreateMessageResult, Resolve(complete_prompt)]) -> str:
    """Asks the client's model."""
    return f"{answer.model}: {answer.content.text}"


def list_roots() -> ListRoots:
    """Asks for the client's roots."""
    return ListRoots()


@server.tool()
def roots(answer: Annotated[ListRootsResult, Resolve(list_roots)]) -> list[str]:
    """Lists the client's roots."""
    return [str(root.uri) for root in answer.roots]


@server.resource("note://{name}", mime_type="text/plain")
def note(name: str) -> str:
    """A note."""
    return notes[name]


@server.resource("peer://about", mime_type="text/plain")
def about() -> str:
    """About this server."""
    return "a peer for tests"


@server.prompt()
def greet(name: str) -> str:
    """Greets someone."""
    return f"Say hello to {name}."


def main(transport: str, port: str = "0") -> None:
    """Runs the server."""
    if transport == "stdio":
        server.run("stdio")
    else:
        server.run({"http": "streamable-http", "sse": "sse"}[transport], port=int(port))


if __name__ == "__main__":
    main(*sys.argv[1:])
