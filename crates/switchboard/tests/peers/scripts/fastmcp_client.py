"""A client on fastmcp."""

import contextlib

from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport
from mcp_types import CreateMessageResult, TextContent

from tour import run, withdrawn


class Fast:
    def __init__(self, client):
        self.client = client
        self.revision = client.session.protocol_version

    async def tools(self):
        return [tool.name for tool in await self.client.list_tools()]

    async def call(self, name, arguments, on_progress=None):
        result = await self.client.call_tool(
            name, arguments, progress_handler=on_progress, raise_on_error=False
        )
        return result.is_error, "\n".join(part.text for part in result.content)

    async def prompts(self):
        return [prompt.name for prompt in await self.client.list_prompts()]

    async def prompt(self, name, arguments):
        return (await self.client.get_prompt(name, arguments)).messages[0].content.text

    async def resources(self):
        return [str(resource.uri) for resource in await self.client.list_resources()]

    async def read(self, uri):
        [contents] = await self.client.read_resource(uri)
        return contents.text

    async def templates(self):
        return [template.uri_template for template in await self.client.list_resource_templates()]

    async def level(self):
        if self.revision < "2026-07-28":
            await self.client.set_logging_level("info")

    @contextlib.asynccontextmanager
    async def watching(self):
        yield

    async def withdraw(self, call):
        return await withdrawn(call)


@contextlib.asynccontextmanager
async def connect(tour, news):
    async def log(message):
        news.log(message)

    async def message(message):
        news.tell(message)

    async def elicit(message, response_type, params, context):
        action, content = news.elicit(message)
        return ElicitResult(action=action, content=content)

    async def sample(messages, params, context):
        content = TextContent(type="text", text="Paris")
        return CreateMessageResult(role="assistant", content=content, model="tester", stop_reason="endTurn")

    if "command" in tour:
        transport = StdioTransport(tour["command"][0], tour["command"][1:], keep_alive=False)
    elif "sse" in tour:
        transport = SSETransport(tour["sse"], auth=tour["token"])
    else:
        transport = StreamableHttpTransport(tour["url"], auth=tour["token"])
    async with Client(
        transport,
        mode="auto" if tour["modern"] else "legacy",
        log_handler=log,
        message_handler=message,
        elicitation_handler=elicit,
        sampling_handler=sample,
        roots=["file:///tour"],
    ) as client:
        yield Fast(client)


run(connect)
