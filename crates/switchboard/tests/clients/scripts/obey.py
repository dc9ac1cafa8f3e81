"""A client that has nothing of its own in mind: its job, how it tells of what happens, and what it does when it
is told to on its standard input."""

import asyncio
import json
import sys

from jsonschema import Draft202012Validator
from jsonschema.validators import validator_for

JOB = json.loads(sys.argv[1])


def tell(step, **what):
    print(json.dumps({"step": step, **what}), flush=True)


def elicited(message, schema):
    """Tells of a question, and gives the job's next answer."""
    tell("asked", message=message, schema=schema)
    return JOB["elicits"].pop(0)


async def obey(client):
    """Does what each line says, one JSON object per line, until there is no more: tells of the result, whole, or
    of the error with which the SDK ended it. `client.whole` calls a method of the SDK's."""
    doing = {
        "call": lambda wish: client.whole("call_tool", wish["name"], wish.get("args")),
        "tools": lambda wish: client.whole("list_tools"),
        "prompts": lambda wish: client.whole("list_prompts"),
        "prompt": lambda wish: client.whole("get_prompt", wish["name"], wish.get("args")),
        "resources": lambda wish: client.whole("list_resources"),
        "templates": lambda wish: client.whole("list_resource_templates"),
        "read": lambda wish: client.whole("read_resource", wish["uri"]),
        "judge": judge,
    }
    while line := await asyncio.to_thread(sys.stdin.readline):
        wish = json.loads(line)
        try:
            tell("did", result=await doing[wish["do"]](wish))
        except Exception as error:
            tell("failed", error=str(error), code=getattr(error, "code", None))


async def judge(wish):
    """What the checker of schemas that the SDK uses says of a value."""
    checker = validator_for(wish["schema"], default=Draft202012Validator)
    checker.check_schema(wish["schema"])
    return {"valid": checker(wish["schema"]).is_valid(wish["value"])}
