"""A server on mcp 1, the official Python SDK of the handshake revisions, with the tools of every peer.

    python python1_server.py stdio
    python python1_server.py http   streamable HTTP, at /mcp
    python python1_server.py sse    HTTP+SSE of 2024-11-05, at /sse

On a port, the line "Uvicorn running on http://127.0.0.1:PORT" on stderr names it.
"""

import sys

import anyio
from mcp.server.fastmcp import Context, FastMCP
from mcp.types import SamplingMessage, TextContent
from pydantic import AnyUrl, BaseModel

server = FastMCP("python1-peer", instructions="A peer for tests.", host="127.0.0.1", port=0)
notes = {"greeting": "hello"}
subscribers = {}
sessions = set()


@server.tool()
def add(a: int, b: int) -> str:
    """Adds two numbers."""
    return str(a + b)


@server.tool()
def fail(message: str) -> str:
    """Fails with the message."""
    raise ValueError(message)


@server.tool()
async def count(ctx: Context, to: int) -> str:
    """Counts up, reporting progress at each step."""
    for step in range(1, to + 1):
        await ctx.report_progress(step, to, f"step {step}")
    return f"counted to {to}"


@server.tool()
async def sleep(ctx: Context, seconds: float) -> str:
    """Sleeps; says on stderr that it began, and if it was cancelled."""
    print("sleep began", file=sys.stderr, flush=True)
    try:
        await ctx.report_progress(0, seconds, "asleep")
        await anyio.sleep(seconds)
    except anyio.get_cancelled_exc_class():
        print("sleep was cancelled", file=sys.stderr, flush=True)
        raise
    return "awake"


@server.tool()
async def log(ctx: Context, message: str) -> str:
    """Sends a log message."""
    await ctx.log("info", message, logger_name="peer")
    return "logged"


class Name(BaseModel):
    """What `ask` wants to know."""

    name: str


@server.tool()
async def ask(ctx: Context, question: str) -> str:
    """Asks the user for a name."""
    answer = await ctx.elicit(question, Name)
    return f"accept: {answer.data.name}" if answer.action == "accept" else answer.action


@server.tool()
async def sample(ctx: Context, prompt: str) -> str:
    """Asks the client's model."""
    messages = [SamplingMessage(role="user", content=TextContent(type="text", text=prompt))]
    answer = await ctx.session.create_message(messages, max_tokens=100, related_request_id=ctx.request_id)
    return f"{answer.model}: {answer.content.text}"


@server.tool()
async def roots(ctx: Context) -> str:
    """Lists the client's roots."""
    return "\n".join(str(root.uri) for root in (await ctx.session.list_roots()).roots)


@server.tool()
async def set_note(name: str, text: str) -> str:
    """Changes the resource note://NAME, and tells those subscribed to it."""
    notes[name] = text
    for session in subscribers.get(f"note://{name}", ()):
        await session.send_resource_updated(AnyUrl(f"note://{name}"))
    return "set"


@server.tool()
async def learn(ctx: Context, name: str) -> str:
    """Adds a tool of that name, and tells that the list changed."""
    server.add_tool(lambda: name, name=name, description="A tool that was learnt.")
    await ctx.session.send_tool_list_changed()
    return f"learnt {name}"


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


# What the layer below can do, and the one above does not reach.
lower = server._mcp_server


@lower.set_logging_level()
async def set_level(level: str) -> None:
    """Every level is sent."""


@lower.subscribe_resource()
async def subscribe(uri: AnyUrl) -> None:
    """Takes down who wants to hear of a resource."""
    subscribers.setdefault(str(uri), set()).add(lower.request_context.session)


@lower.unsubscribe_resource()
async def unsubscribe(uri: AnyUrl) -> None:
    """Forgets who wanted to hear of a resource."""
    subscribers.get(str(uri), set()).discard(lower.request_context.session)


def declare(get_capabilities):
    """Has the capabilities tell of these, too."""

    def declared(*args):
        capabilities = get_capabilities(*args)
        capabilities.tools.listChanged = True
        capabilities.resources.subscribe = True
        return capabilities

    return declared


lower.get_capabilities = declare(lower.get_capabilities)

if __name__ == "__main__":
    server.run({"stdio": "stdio", "http": "streamable-http", "sse": "sse"}[sys.argv[1]])
