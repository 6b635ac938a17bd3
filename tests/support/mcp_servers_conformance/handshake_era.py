"""Server features until 2025-11-25: requests to the client during a call, logging, subscriptions."""

import warnings
from collections.abc import Awaitable, Callable
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types import (
    RequestParams,
    SamplingMessage,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    UnsubscribeRequestParams,
)

Context = ServerRequestContext[Any, Any]
Result = dict[str, Any]


async def log(context: Context, *messages: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        for message in messages:
            await context.session.send_log_message("info", message, related_request_id=context.request_id)


async def sample(context: Context, arguments: Result) -> str:
    question = SamplingMessage(role="user", content=TextContent(type="text", text=str(arguments["prompt"])))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        answer = await context.session.create_message(
            [question], max_tokens=100, related_request_id=context.request_id
        )
    return f"LLM response: {answer.model_dump_json()}"


async def elicit(context: Context, arguments: Result) -> str:
    schema = {"type": "object", "properties": {"response": {"type": "string"}}, "required": ["response"]}
    answer = await context.session.elicit_form(str(arguments["message"]), schema, context.request_id)
    return f"User response: {answer.model_dump_json()}"


async def log_three_times(context: Context, _arguments: Result) -> str:
    await log(context, "Tool execution started", "Tool processing data", "Tool execution completed")
    return "logged"


ASKING_TOOLS: dict[str, Callable[[Context, Result], Awaitable[str]]] = {
    "test_sampling": sample,
    "test_elicitation": elicit,
    "test_tool_with_logging": log_three_times,
}


def add_handlers_of_old(server: Server[Any]) -> None:
    async def nod(_context: Context, _params: RequestParams) -> Result:
        return {}

    server.add_request_handler("logging/setLevel", SetLevelRequestParams, nod)
    server.add_request_handler("resources/subscribe", SubscribeRequestParams, nod)
    server.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, nod)
