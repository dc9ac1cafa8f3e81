"""A client on mcp 2, the official Python SDK, which speaks the newest revision if it is told to."""

import contextlib
import warnings

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CreateMessageResult, ElicitResult, ListRootsResult, Root, TextContent

from tour import run, withdrawn

# Of what is on its way out of the protocol; it is here as long as others have it.
warnings.simplefilter("ignore")


class Sdk:
    def __init__(self, client, modern):
        self.client = client
        self.modern = modern
        self.revision = client.protocol_version

    async def tools(self):
        return [tool.name for tool in (await self.client.list_tools()).tools]

    async def call(self, name, arguments, on_progress=None):
        result = await self.client.call_tool(name, arguments, progress_callback=on_progress)
        return bool(result.is_error), "\n".join(part.text for part in result.content)

    async def prompts(self):
        return [prompt.name for prompt in (await self.client.list_prompts()).prompts]

    async def prompt(self, name, arguments):
        return (await self.client.get_prompt(name, arguments)).messages[0].content.text

    async def resources(self):
        return [str(resource.uri) for resource in (await self.client.list_resources()).resources]

    async def read(self, uri):
        [contents] = (await self.client.read_resource(uri)).contents
        return contents.text

    async def templates(self):
        listed = await self.client.list_resource_templates()
        return [template.uri_template for template in listed.resource_templates]

    async def level(self):
        if not self.modern:
            await self.client.set_logging_level("info")

    @contextlib.asynccontextmanager
    async def listening(self, uri):
        if self.modern:
            async with self.client.listen(resource_subscriptions=[uri]):
                yield
        else:
            await self.client.subscribe_resource(uri)
            yield
            await self.client.unsubscribe_resource(uri)

    @contextlib.asynccontextmanager
    async def watching(self):
        if self.modern:
            async with self.client.listen(tools_list_changed=True):
                yield
        else:
            yield

    async def withdraw(self, call):
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
        return CreateMessageResult(role="assistant", content=content, model="tester", stop_reason="endTurn")

    async def roots(context):
        return ListRootsResult(roots=[Root(uri="file:///tour", name="tour")])

    headers = {"Authorization": f"Bearer {tour['token']}"}
    async with contextlib.AsyncExitStack() as stack:
        if "command" in tour:
            server = StdioServerParameters(command=tour["command"][0], args=tour["command"][1:])
        elif "sse" in tour:
            server = sse_client(tour["sse"], headers=headers)
        else:
            http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=30))
            server = streamable_http_client(tour["url"], http_client=http)
        client = Client(
            server,
            mode="auto" if tour["modern"] else "legacy",
            logging_callback=log,
            log_level="info",
            message_handler=message,
            elicitation_callback=elicit,
            sampling_callback=sample,
            list_roots_callback=roots,
        )
        yield Sdk(await stack.enter_async_context(client), tour["modern"])


run(connect)
