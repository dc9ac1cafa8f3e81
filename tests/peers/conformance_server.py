"""The server that the conformance suite asks for, on the official Python SDK and in its style.

    python conformance_server.py stdio
    python conformance_server.py http   streamable HTTP, at /mcp

On mcp 2 it speaks every revision, on mcp 1 the handshake revisions. A tool that needs an answer while it runs calls
`ctx.elicit` or `create_message`, which the SDK has for the handshake revisions alone; the scenarios of 2026-07-28
have tools of their own, in `conformance_inputs.py`.

On a port, the line "Uvicorn running on http://127.0.0.1:PORT" on stderr names it.
"""

import base64
import json
import sys
from typing import Annotated

import anyio
from pydantic import BaseModel, Field

try:
    from mcp.server.mcpserver import Context, MCPServer, RequestStateSecurity
    from mcp_types import (
        AudioContent,
        Completion,
        EmbeddedResource,
        EmptyResult,
        ImageContent,
        SamplingMessage,
        SetLevelRequestParams,
        SubscribeRequestParams,
        TextContent,
        TextResourceContents,
        UnsubscribeRequestParams,
    )
except ImportError:
    MCPServer = None
    from mcp.server.fastmcp import Context, FastMCP
    from mcp.types import (
        AudioContent,
        Completion,
        EmbeddedResource,
        ImageContent,
        SamplingMessage,
        TextContent,
        TextResourceContents,
    )

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
SCHEMA_2020_12 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {"$anchor": "addressDef", "type": "object", "properties": {"city": {"type": "string"}}}
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

if MCPServer:
    security = RequestStateSecurity(keys=[b"a key for tests, of 32 bytes and more"])
    server = MCPServer("python-conformance", version="1.0.0", request_state_security=security)
else:
    server = FastMCP("python-conformance", host="127.0.0.1", port=0)


def text(words: str) -> TextContent:
    return TextContent(type="text", text=words)


def image() -> ImageContent:
    return ImageContent(type="image", data=PNG, mimeType="image/png")


def embedded(uri: str, mime_type: str, words: str) -> EmbeddedResource:
    resource = TextResourceContents(uri=uri, mimeType=mime_type, text=words)
    return EmbeddedResource(type="resource", resource=resource)


@server.tool()
def test_simple_text() -> str:
    """Returns text."""
    return "This is a simple text response for testing."


@server.tool()
def test_image_content() -> list[ImageContent]:
    """Returns an image."""
    return [image()]


@server.tool()
def test_audio_content() -> list[AudioContent]:
    """Returns audio."""
    return [AudioContent(type="audio", data=WAV, mimeType="audio/wav")]


@server.tool()
def test_embedded_resource() -> list[EmbeddedResource]:
    """Returns an embedded resource."""
    return [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")]


@server.tool()
def test_multiple_content_types() -> list[TextContent | ImageContent | EmbeddedResource]:
    """Returns text, an image and a resource."""
    data = embedded("test://mixed-content-resource", "application/json", '{"test": "data", "value": 123}')
    return [text("Multiple content types test:"), image(), data]


@server.tool()
def test_error_handling() -> str:
    """Fails."""
    raise RuntimeError("This tool intentionally returns an error for testing")


@server.tool()
async def test_tool_with_logging(ctx: Context) -> str:
    """Sends log messages while it runs."""
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.info(message)
        await anyio.sleep(0.05)
    return "logged"


@server.tool()
async def test_tool_with_progress(ctx: Context) -> str:
    """Reports progress while it runs."""
    for progress in (0, 50, 100):
        await ctx.report_progress(progress, 100, f"step {progress} of 100")
        await anyio.sleep(0.05)
    return "done"


@server.tool()
def test_x_mcp_header(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "none") -> str:
    """Has an argument that goes into a header as well."""
    return region


@server.tool()
def json_schema_2020_12_tool() -> str:
    """Has the keywords of JSON Schema 2020-12."""
    return "ok"


# The decorator makes a schema of the function, and takes no other.
server._tool_manager._tools["json_schema_2020_12_tool"].parameters = SCHEMA_2020_12


@server.tool()
async def test_sampling(prompt: str, ctx: Context) -> str:
    """Asks the client's model while it runs."""
    messages = [SamplingMessage(role="user", content=text(prompt))]
    answer = await ctx.session.create_message(messages, max_tokens=100, related_request_id=ctx.request_id)
    return f"LLM response: {answer.content.text}"


async def ask(ctx: Context, message: str, schema: type[BaseModel]) -> str:
    answer = await ctx.elicit(message, schema)
    content = answer.data.model_dump_json() if answer.action == "accept" else "{}"
    return f"User response: action={answer.action}, content={content}"


class Response(BaseModel):
    response: str = Field(description="User's response")


class Defaults(BaseModel):
    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: str = Field("active", json_schema_extra={"enum": ["active", "inactive", "pending"]})
    verified: bool = True


VALUES = ["one", "two", "three"]
TITLED = [{"const": value, "title": f"Option {value}"} for value in VALUES]


class Enums(BaseModel):
    untitledSingle: str = Field(json_schema_extra={"enum": VALUES})
    titledSingle: str = Field(json_schema_extra={"oneOf": TITLED})
    legacyEnum: str = Field(json_schema_extra={"enum": VALUES, "enumNames": ["One", "Two", "Three"]})
    untitledMulti: list[str] = Field(json_schema_extra={"items": {"type": "string", "enum": VALUES}})
    titledMulti: list[str] = Field(json_schema_extra={"items": {"anyOf": TITLED}})


@server.tool()
async def test_elicitation(message: str, ctx: Context) -> str:
    """Asks the user while it runs."""
    return await ask(ctx, message, Response)


@server.tool()
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Asks with defaults."""
    return await ask(ctx, "Please review the defaults", Defaults)


@server.tool()
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Asks with every form of enum."""
    return await ask(ctx, "Please select options", Enums)


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """An image."""
    return base64.b64decode(PNG)


@server.resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> str:
    """A text for each ID."""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


@server.resource("test://watched-resource", mime_type="text/plain")
def watched() -> str:
    """A text to subscribe to."""
    return "watched"


@server.prompt()
def test_simple_prompt() -> str:
    """A prompt."""
    return "This is a simple prompt for testing."


@server.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with two arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> list:
    """A prompt with a resource."""
    return [{"role": "user", "content": embedded(resourceUri, "text/plain", "Embedded resource content for testing.")}]


@server.prompt()
def test_prompt_with_image() -> list:
    """A prompt with an image."""
    return [{"role": "user", "content": image()}]


@server.completion()
async def complete(ref, argument, context) -> Completion:
    return Completion(values=[], hasMore=False)


# The rest is for the layer below, which the two SDKs have under different names.
if MCPServer:

    async def accept(ctx, params) -> EmptyResult:
        return EmptyResult()

    for method, params in {
        "logging/setLevel": SetLevelRequestParams,
        "resources/subscribe": SubscribeRequestParams,
        "resources/unsubscribe": UnsubscribeRequestParams,
    }.items():
        server._lowlevel_server.add_request_handler(method, params, accept)

    import conformance_inputs

    conformance_inputs.register(server)
else:

    async def accept(_) -> None:
        pass

    server._mcp_server.set_logging_level()(accept)
    server._mcp_server.subscribe_resource()(accept)
    server._mcp_server.unsubscribe_resource()(accept)


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    elif MCPServer:
        server.run("streamable-http", port=0)
    else:
        server.run("streamable-http")
