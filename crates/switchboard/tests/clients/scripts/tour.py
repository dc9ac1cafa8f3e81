"""What a client on either Python SDK does here; sdk.py and fast.py say how each does it.

The job comes as JSON in the first argument, what happens goes out as one JSON object per line, and a
client that is to stay does so until its standard input is closed.
"""

import asyncio
import sys

from mcp_types import PromptReference, ResourceTemplateReference

from obey import JOB, obey, tell

PREFIX = JOB["prefix"]
LONG = PREFIX + "trigger-long-running-operation"
# How to open the conversation: in the newest revision if the server has it, or as it was done before.
MODE = "auto" if JOB["modern"] else "legacy"


async def run(client):
    """Does the job with a client that is connected."""
    tell("connected", server=client.server, revision=client.revision)
    parts = {
        "tools": tools,
        "progress": progress,
        "prompts": prompts,
        "resources": resources,
        "cancel": cancel,
        "stay": stay,
        "obey": obey,
    }
    for part in JOB["parts"]:
        await parts[part](client)


async def tools(client):
    tell("tools", names=await client.tools())
    text, _ = await client.call(PREFIX + "echo", {"message": "hello"})
    tell("called", text=text)
    _, weather = await client.call(PREFIX + "get-structured-content", {"location": "Chicago"})
    tell("structured", value=weather)


async def progress(client):
    heard = 0

    async def on_progress(progress, total, message):
        nonlocal heard
        heard += 1
        tell("progress", progress=progress, total=total)

    text, _ = await client.call(LONG, {"duration": 0.5, "steps": 5}, on_progress)
    tell("finished", text=text, heard=heard)


async def prompts(client):
    tell("prompts", names=await client.prompts())
    tell("prompt", text=await client.prompt(PREFIX + "args-prompt", {"city": "Oslo"}))
    of = PromptReference(type="ref/prompt", name=PREFIX + "completable-prompt")
    tell("completion", values=await client.complete(of, {"name": "department", "value": "E"}))


async def resources(client):
    [uri] = [uri for uri in await client.resources() if uri.endswith("/architecture.md")]
    told, text = await client.read(uri)
    tell("resource", asked=uri, uri=told, text=text)
    [template] = [template for template in await client.templates() if "/text/" in template]
    _, text = await client.read(template.replace("{resourceId}", "7"))
    tell("template", template=template, text=text)
    of = ResourceTemplateReference(type="ref/resource", uri=template)
    tell("completion", values=await client.complete(of, {"name": "resourceId", "value": "7"}))


async def cancel(client):
    """Withdraws a call that has begun, and makes another."""
    begun = asyncio.Event()

    async def on_progress(progress, total, message):
        begun.set()

    call = asyncio.create_task(client.call(LONG, {"duration": 600, "steps": 6000}, on_progress))
    await begun.wait()
    call.cancel()
    try:
        await call
        tell("finished")
    except asyncio.CancelledError as error:
        tell("cancelled", error=repr(error))
    text, _ = await client.call(PREFIX + "echo", {"message": "still here"})
    tell("called", text=text)


async def stay(client):
    """Calls, and stays until it is told to leave."""
    text, _ = await client.call(PREFIX + "echo", {"message": "hello"})
    tell("called", text=text)
    await asyncio.to_thread(sys.stdin.read)
