"""A client on fastmcp."""

import asyncio

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

from tour import JOB, MODE, run, tell


class Fast:
    def __init__(self, client):
        self.client = client
        self.server = client.session.server_info and client.session.server_info.name
        self.revision = client.session.protocol_version

    async def tools(self):
        return [tool.name for tool in await self.client.list_tools()]

    async def call(self, name, arguments, on_progress=None):
        result = await self.client.call_tool(name, arguments, progress_handler=on_progress)
        return "\n".join(part.text for part in result.content), result.structured_content

    async def prompts(self):
        return [prompt.name for prompt in await self.client.list_prompts()]

    async def prompt(self, name, arguments):
        return (await self.client.get_prompt(name, arguments)).messages[0].content.text

    async def resources(self):
        return [str(resource.uri) for resource in await self.client.list_resources()]

    async def read(self, uri):
        [contents] = await self.client.read_resource(uri)
        return str(contents.uri), contents.text

    async def templates(self):
        return [template.uri_template for template in await self.client.list_resource_templates()]

    async def complete(self, of, argument):
        return (await self.client.complete(of, argument)).values


async def main():
    if "command" in JOB:
        transport = StdioTransport(JOB["command"][0], JOB["command"][1:], keep_alive=False)
    else:
        transport = StreamableHttpTransport(JOB["url"], auth=JOB["token"])
    async with Client(transport, mode=MODE) as client:
        await run(Fast(client))
    tell("closed")


asyncio.run(main())
