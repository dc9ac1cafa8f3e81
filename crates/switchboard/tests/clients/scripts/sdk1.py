"""A client on mcp 1, the official Python SDK of the handshake revisions, which does what it is told."""

import asyncio

from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamablehttp_client
from mcp.types import ElicitResult

from obey import JOB, elicited, obey, tell


class Sdk:
    def __init__(self, session):
        self.session = session

    async def whole(self, method, *args):
        """Whatever the SDK gives, as it came."""
        result = await getattr(self.session, method)(*args)
        return result.model_dump(mode="json", by_alias=True, exclude_unset=True)


async def elicit(context, params):
    return ElicitResult(**elicited(params.message, params.requestedSchema))


async def main():
    if "command" in JOB:
        way = stdio_client(StdioServerParameters(command=JOB["command"][0], args=JOB["command"][1:]))
    else:
        way = streamablehttp_client(JOB["url"], headers={"Authorization": f"Bearer {JOB['token']}"})
    answering = elicit if "elicits" in JOB else None
    async with way as streams, ClientSession(*streams[:2], elicitation_callback=answering) as session:
        greeted = await session.initialize()
        tell("connected", server=greeted.serverInfo.name, revision=greeted.protocolVersion)
        await obey(Sdk(session))
    tell("closed")


asyncio.run(main())
