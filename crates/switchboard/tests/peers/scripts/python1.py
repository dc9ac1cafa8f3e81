"""A client on mcp 1, the official Python SDK of the handshake revisions."""

import contextlib

from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamablehttp_client
from mcp.types import (
    CancelledNotification,
    CancelledNotificationParams,
    ClientNotification,
    CreateMessageResult,
    ElicitResult,
    ListRootsResult,
    Root,
    TextContent,
)

from tour import run, withdrawn


class Sdk:
    def __init__(self, session, revision):
        self.session = session
        self.revision = revision

    async def tools(self):
        return [tool.name for tool in (await self.session.list_tools()).tools]

    async def call(self, name, arguments, on_progress=None):
        result = await self.session.call_tool(name, arguments, progress_callback=on_progress)
        return result.isError, "\n".join(part.text for part in result.content)

    async def prompts(self):
        return [prompt.name for prompt in (await self.session.list_prompts()).prompts]

    async def prompt(self, name, arguments):
        return (await self.session.get_prompt(name, arguments)).messages[0].content.text

    async def resources(self):
        return [str(resource.uri) for resource in (await self.session.list_resources()).resources]

    async def read(self, uri):
        [contents] = (await self.session.read_resource(uri)).contents
        return contents.text

    async def templates(self):
        listed = await self.session.list_resource_templates()
        return [template.uriTemplate for template in listed.resourceTemplates]

    async def level(self):
        await self.session.set_logging_level("info")

    @contextlib.asynccontextmanager
    async def listening(self, uri):
        await self.session.subscribe_resource(uri)
        yield
        await self.session.unsubscribe_resource(uri)

    @contextlib.asynccontextmanager
    async def watching(self):
        yield

    async def withdraw(self, call):
        # This SDK does not say that a call is withdrawn: whoever uses it does. The call is the last request.
        params = CancelledNotificationParams(requestId=self.session._request_id - 1, reason="changed my mind")
        cancelled = CancelledNotification(method="notifications/cancelled", params=params)
        await self.session.send_notification(ClientNotification(cancelled))
        return await withdrawn(call)


@contextlib.asynccontextmanager
async def connect(tour, news):
    async def log(params):
        news.log(params)

    async def message(message):
        news.tell(message)

    async def elicit(context, params):
        action, content = news.elicit(params.message)
        return ElicitResult(action=action, content=content)

    async def sample(context, params):
        content = TextContent(type="text", text="Paris")
        return CreateMessageResult(role="assistant", content=content, model="tester", stopReason="endTurn")

    async def roots(context):
        return ListRootsResult(roots=[Root(uri="file:///tour", name="tour")])

    headers = {"Authorization": f"Bearer {tour['token']}"}
    if "command" in tour:
        way = stdio_client(StdioServerParameters(command=tour["command"][0], args=tour["command"][1:]))
    elif "sse" in tour:
        way = sse_client(tour["sse"], headers=headers)
    else:
        way = streamablehttp_client(tour["url"], headers=headers)
    async with way as streams:
        async with ClientSession(
            streams[0],
            streams[1],
            logging_callback=log,
            message_handler=message,
            elicitation_callback=elicit,
            sampling_callback=sample,
            list_roots_callback=roots,
        ) as session:
            initialized = await session.initialize()
            yield Sdk(session, initialized.protocolVersion)


run(connect)
