"""What the conformance suite asks of a server of 2026-07-28 on the official Python SDK: tools and a prompt that
return `InputRequiredResult`, whose keys the suite prescribes, and the tools about streams and capabilities."""

import json

from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import MCPError
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
)


def form(message: str, member: str, kind: str = "string") -> ElicitRequest:
    schema = {"type": "object", "properties": {member: {"type": kind}}, "required": [member]}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(prompt: str) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=100))


def required(state: object = None, **requests: object) -> InputRequiredResult:
    return InputRequiredResult(input_requests=requests, request_state=state and json.dumps(state))


def answer(ctx: Context, key: str, member: str) -> object:
    """A member of the form that the user filled in; `None` if it is not there, or not a form."""
    content = getattr((ctx.input_responses or {}).get(key), "content", None)
    return content.get(member) if isinstance(content, dict) else None


def register(server: MCPServer) -> None:
    @server.tool()
    async def test_input_required_result_elicitation(ctx: Context) -> str | InputRequiredResult:
        """Asks the user."""
        name = answer(ctx, "user_name", "name")
        return f"Hello, {name}!" if name else required(user_name=form("What is your name?", "name"))

    @server.tool()
    async def test_input_required_result_sampling(ctx: Context) -> str | InputRequiredResult:
        """Asks the client's model."""
        answered = (ctx.input_responses or {}).get("capital_question")
        if answered is None:
            return required(capital_question=sampling("What is the capital of France?"))
        return f"Sampling response: {answered.content.text}"

    @server.tool()
    async def test_input_required_result_list_roots(ctx: Context) -> str | InputRequiredResult:
        """Asks for the client's roots."""
        answered = (ctx.input_responses or {}).get("client_roots")
        if answered is None:
            return required(client_roots=ListRootsRequest())
        return ", ".join(str(root.uri) for root in answered.roots)

    @server.tool()
    async def test_input_required_result_request_state(ctx: Context) -> str | InputRequiredResult:
        """Wants its state back."""
        if ctx.request_state and answer(ctx, "confirm", "ok") is not None:
            return "state-ok"
        return required("confirm", confirm=form("Please confirm", "ok", "boolean"))

    # The SDK seals the state, and refuses one that was changed.
    @server.tool()
    async def test_input_required_result_tampered_state(ctx: Context) -> str | InputRequiredResult:
        """Refuses a state that was changed."""
        if ctx.request_state and answer(ctx, "confirm", "ok") is not None:
            return "integrity-ok"
        return required("confirm", confirm=form("Please confirm", "ok", "boolean"))

    @server.tool()
    async def test_input_required_result_multiple_inputs(ctx: Context) -> str | InputRequiredResult:
        """Asks for three things at once."""
        if {"user_name", "greeting", "client_roots"} <= (ctx.input_responses or {}).keys():
            return "all inputs received"
        return required(
            "multiple",
            user_name=form("What is your name?", "name"),
            greeting=sampling("Generate a greeting"),
            client_roots=ListRootsRequest(),
        )

    @server.tool()
    async def test_input_required_result_multi_round(ctx: Context) -> str | InputRequiredResult:
        """Asks twice."""
        state = json.loads(ctx.request_state) if ctx.request_state else {"round": 0}
        if state["round"] == 0:
            return required({"round": 1}, step1=form("Step 1: What is your name?", "name"))
        if state["round"] == 1:
            state = {"round": 2, "name": answer(ctx, "step1", "name")}
            return required(state, step2=form("Step 2: Which colour?", "color"))
        return f"{state['name']} likes {answer(ctx, 'step2', 'color')}"

    @server.tool()
    async def test_input_required_result_capabilities(ctx: Context) -> str | InputRequiredResult:
        """Asks for what the client can do."""
        declared = ctx.client_capabilities
        requests = {}
        if declared and declared.elicitation:
            requests["user_name"] = form("What is your name?", "name")
        if declared and declared.sampling:
            requests["greeting"] = sampling("Generate a greeting")
        if declared and declared.roots:
            requests["client_roots"] = ListRootsRequest()
        return required(**requests) if requests and not ctx.input_responses else "done"

    @server.prompt()
    async def test_input_required_result_prompt(ctx: Context) -> str | InputRequiredResult:
        """A prompt that asks the user."""
        context = answer(ctx, "user_context", "context")
        if context is None:
            return required(user_context=form("Which context?", "context"))
        return f"Use the following context: {context}"

    @server.tool()
    async def test_missing_capability(ctx: Context) -> str:
        """Needs a client that can sample."""
        if not (ctx.client_capabilities and ctx.client_capabilities.sampling):
            data = {"requiredCapabilities": {"sampling": {}}}
            raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "this tool samples", data)
        return "the client can sample"

    @server.tool()
    def test_streaming_elicitation() -> str:
        """Asks nothing."""
        return "no request of its own in this stream"

    @server.tool()
    async def test_logging_tool(ctx: Context) -> str:
        """Logs for clients that set a level."""
        await ctx.info("only for clients that set a level")
        return "logged"

    @server.tool()
    async def test_trigger_tool_change(ctx: Context) -> str:
        """Announces a change of the tools."""
        await ctx.notify_tools_changed()
        return "told"

    @server.tool()
    async def test_trigger_prompt_change(ctx: Context) -> str:
        """Announces a change of the prompts."""
        await ctx.notify_prompts_changed()
        return "told"
