"""What a client on any of the Python SDKs does here; python1.py, python2.py and fastmcp_client.py say how.

The job comes as JSON in the first argument: tours, one after the other, each by a client of its own. What
each part of a tour finds goes out as one JSON object per line; a part that fails says so, and the tour goes
on, so that one run shows all that is wrong.
"""

import asyncio
import json
import os
import sys

PATIENCE = 30


class News:
    """What the server said unasked, and the user of the client."""

    def __init__(self):
        self.logs = []
        self.heard = []
        self._more = asyncio.Event()

    def log(self, params):
        self.logs.append([params.level, params.logger, params.data])
        self._more.set()

    async def a_log(self):
        """Waits until there is a log message: the SDKs may hand over the answer sooner."""
        while not self.logs:
            self._more.clear()
            await self._more.wait()

    def tell(self, message):
        """Takes down a notification, by the name of its method."""
        message = getattr(message, "root", message)
        if hasattr(message, "method"):
            self.heard.append((message.method, str(getattr(message.params, "uri", ""))))
            self._more.set()

    async def of(self, method):
        """Waits until there is one of this method, and gives its URI."""
        while True:
            for known, uri in self.heard:
                if known == method:
                    return uri
            self._more.clear()
            await self._more.wait()

    @staticmethod
    def elicit(message):
        """The answer to a question: what to do, and the content."""
        return ("decline", None) if "decline" in message else ("accept", {"name": "Ada"})


async def _tour(connect, tour):
    def tell(part, **what):
        print(json.dumps({"tour": tour["name"], "part": part, **what}), flush=True)

    async def attempt(part, doing):
        try:
            async with asyncio.timeout(PATIENCE):
                tell(part, value=await doing)
        except TimeoutError:
            tell(part, error="nothing happened")
        except Exception as error:
            tell(part, error=f"{error}" or repr(error), code=getattr(error, "code", None))

    news = News()
    try:
        async with connect(tour, news) as client:
            tell("connect", value=client.revision)
            for part in tour["parts"]:
                await attempt(part, PARTS[part](client, news, tour))
        tell("close", value=None)
    except BaseException as error:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        tell("close", error=repr(error))


def run(connect):
    """Goes on every tour. `connect(tour, news)` is a context in which there is a client."""

    async def every():
        for tour in json.loads(sys.argv[1])["tours"]:
            await _tour(connect, tour)

    asyncio.run(every())
    sys.stdout.flush()
    os._exit(0)  # whatever a part that failed has left behind


async def tools(client, news, tour):
    return sorted(name for name in await client.tools() if not name.startswith("learnt"))


async def call(client, news, tour):
    _, total = await client.call("add", {"a": 2, "b": 3})
    failed, text = await client.call("fail", {"message": "no luck"})
    return [total, failed, text.split(": ")[-1]]


async def progress(client, news, tour):
    heard = []

    async def on_progress(progress, total, message):
        heard.append([progress, total, message])

    _, text = await client.call("count", {"to": 3}, on_progress)
    return [*heard, text]


async def log(client, news, tour):
    await client.level()
    news.logs.clear()
    _, text = await client.call("log", {"message": "hello"})
    await news.a_log()
    return [*news.logs, text]


async def ask(client, news, tour):
    _, accepted = await client.call("ask", {"question": "Who are you?"})
    _, declined = await client.call("ask", {"question": "Will you decline?"})
    return [accepted, declined]


async def sample(client, news, tour):
    _, text = await client.call("sample", {"prompt": "The capital of France?"})
    return text


async def roots(client, news, tour):
    _, text = await client.call("roots", {})
    return text


async def prompts(client, news, tour):
    return [await client.prompts(), await client.prompt("greet", {"name": "Ada"})]


async def resources(client, news, tour):
    return [
        await client.resources(),
        await client.read("peer://about"),
        await client.templates(),
        await client.read("note://greeting"),
    ]


async def update(client, news, tour):
    name = tour["tag"]
    uri = f"note://{name}"
    await client.call("set_note", {"name": name, "text": "old"})
    async with client.listening(uri):
        news.heard.clear()
        await client.call("set_note", {"name": name, "text": "new"})
        told = await news.of("notifications/resources/updated")
        return [told, await client.read(uri)]


async def change(client, news, tour):
    name = f"learnt-{tour['tag']}"
    async with client.watching():
        news.heard.clear()
        await client.call("learn", {"name": name})
        await news.of("notifications/tools/list_changed")
        return name in await client.tools()


async def cancel(client, news, tour):
    """Withdraws a call that has begun, and makes another."""
    begun = asyncio.Event()

    async def on_progress(progress, total, message):
        begun.set()

    call = asyncio.create_task(client.call("sleep", {"seconds": 600}, on_progress))
    waiting = asyncio.create_task(begun.wait())
    await asyncio.wait([call, waiting], return_when=asyncio.FIRST_COMPLETED)
    ended = await client.withdraw(call)
    _, total = await client.call("add", {"a": 2, "b": 3})
    return [ended, total]


PARTS = {
    "tools": tools,
    "call": call,
    "progress": progress,
    "log": log,
    "ask": ask,
    "sample": sample,
    "roots": roots,
    "prompts": prompts,
    "resources": resources,
    "update": update,
    "change": change,
    "cancel": cancel,
}


async def withdrawn(call):
    """Cancels the task, and tells how it ended."""
    call.cancel()
    try:
        _, text = await call
        return text
    except asyncio.CancelledError:
        return "withdrawn"
