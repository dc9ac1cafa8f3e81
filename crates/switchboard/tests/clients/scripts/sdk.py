"""A client on mcp, the official Python SDK."""

import asyncio

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

from obey import elicited
from tour import JOB, MODE, run, tell


class Sdk:
    def __init__(self, client):
        self.client = client
        self.server = client.server_info and client.server_info.name
        self.revision = client.protocol_version

    async def tools(self):
        return [tool.name for tool in (await self.client.list_tools()).tools]

    async def call(self, name, arguments, on_progress=None):
        result = await self.client.call_tool(name, arguments, progress_callback=on_progress)
        return "\n".join(part.text for part in result.content), result.structured_content

    async def prompts(self):
        return [prompt.name for prompt in (await self.client.list_prompts()).prompts]

    async def prompt(self, name, arguments):
        return (await self.client.get_prompt(name, arguments)).messages[0].content.text

    async def resources(self):
        return [str(resource.uri) for resource in (await self.client.list_resources()).resources]

    async def read(self, uri):
        [contents] = (await self.client.read_resource(uri)).contents
        return str(contents.uri), contents.text

    async def templates(self):
        listed = await self.client.list_resource_templates()
        return [template.uri_template for template in listed.resource_templates]

    async def complete(self, of, argument):
        return (await self.client.complete(of, argument)).completion.values

    async def whole(self, method, *args):
        """Whatever the SDK gives, as it came."""
        result = await getattr(self.client, method)(*args)
        return result.model_dump(mode="json", by_alias=True, exclude_unset=True)


async def elicit(context, params):
    return ElicitResult(**elicited(params.message, params.requested_schema))


async def main():
    options = {"mode": MODE, "elicitation_callback": elicit if "elicits" in JOB else None}
    if "command" in JOB:
        server = StdioServerParameters(command=JOB["command"][0], args=JOB["command"][1:])
        async with Client(server, **options) as client:
            await run(Sdk(client))
    else:
        http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {JOB['token']}"}, timeout=30)
        async with http, Client(streamable_http_client(JOB["url"], http_client=http), **options) as client:
            await run(Sdk(client))
    tell("closed")


asyncio.run(main())
