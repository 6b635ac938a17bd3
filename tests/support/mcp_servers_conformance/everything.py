"""The test server of the MCP conformance suite, over Streamable HTTP."""

import json
import re
from typing import Any

import anyio
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolRequestParams,
    CompleteRequestParams,
    GetPromptRequestParams,
    PaginatedRequestParams,
    ReadResourceRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from tests.support.mcp_servers_conformance.handshake_era import ASKING_TOOLS, add_handlers_of_old, log
from tests.support.mcp_servers_conformance.offers import (
    CONTENT,
    PROMPTS,
    RESOURCES,
    TEMPLATE,
    TOOLS,
    prompt_messages,
    text,
)
from tests.support.mcp_servers_conformance.rounds import (
    ASKING_IN_ROUNDS,
    ask,
    ask_or_say,
    form,
    next_question,
    sampling,
)

Context = ServerRequestContext[Any, Any]
Result = dict[str, Any]
CACHED = ("tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read")


def everything_server() -> Server[Any]:
    bus = InMemorySubscriptionBus()
    tools = _Tools(bus)
    server: Server[Any] = Server(
        "everything",
        version="1.0.0",
        cache_hints={method: CacheHint(1000) for method in CACHED},  # type: ignore[misc]
        on_subscriptions_listen=ListenHandler(bus),
    )
    server.add_request_handler("tools/list", PaginatedRequestParams, _listing("tools", TOOLS))
    server.add_request_handler("tools/call", CallToolRequestParams, tools.call)
    server.add_request_handler("prompts/list", PaginatedRequestParams, _listing("prompts", PROMPTS))
    server.add_request_handler("prompts/get", GetPromptRequestParams, _get_prompt)
    resources = [{"uri": uri, "name": uri.rpartition("/")[2], **_mime(uri)} for uri in RESOURCES]
    server.add_request_handler("resources/list", PaginatedRequestParams, _listing("resources", resources))
    templates = [{"uriTemplate": TEMPLATE, "name": "template"}]
    listed = _listing("resourceTemplates", templates)
    server.add_request_handler("resources/templates/list", PaginatedRequestParams, listed)
    server.add_request_handler("resources/read", ReadResourceRequestParams, _read_resource)
    server.add_request_handler("completion/complete", CompleteRequestParams, _complete)
    add_handlers_of_old(server)
    return server


def _mime(uri: str) -> Result:
    return {"mimeType": RESOURCES[uri]["mimeType"]}


def _listing(name: str, entries: list[Result]) -> Any:
    async def handle(_context: Context, _params: PaginatedRequestParams) -> Result:
        return {name: entries, "resultType": "complete"}

    return handle


def _said(words: str, *, is_error: bool = False) -> Result:
    return {"content": [text(words)], "isError": is_error, "resultType": "complete"}


class _Tools:
    def __init__(self, bus: InMemorySubscriptionBus) -> None:
        self._bus = bus
        self._by_name: dict[str, Any] = {
            "test_error_handling": self._fail,
            "test_tool_with_progress": self._progress,
            "test_missing_capability": self._missing_capability,
            "test_streaming_elicitation": self._stream_then_ask,
            "test_logging_tool": self._log,
            "test_trigger_tool_change": self._change_tools,
            "test_trigger_prompt_change": self._change_prompts,
            "test_input_required_result_capabilities": self._ask_what_is_possible,
        }

    async def call(self, context: Context, params: CallToolRequestParams) -> Result:
        name = params.name
        if name in CONTENT:
            return {"content": CONTENT[name], "isError": False, "resultType": "complete"}
        if name in self._by_name:
            answer: Result = await self._by_name[name](context)
            return answer
        if name in ASKING_IN_ROUNDS and context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return ask_or_say(name, params.arguments or {}, params.input_responses)
        if name in ASKING_TOOLS:
            return _said(await ASKING_TOOLS[name](context, params.arguments or {}))
        if name.startswith("test_input_required_result_"):
            question = next_question(name, params.input_responses, params.request_state)
            return question or _said("state-ok, and all is answered")
        if name in {tool["name"] for tool in TOOLS}:
            return _said(json.dumps(params.arguments))
        raise MCPError(INVALID_PARAMS, f"Unknown tool: {name}")

    async def _fail(self, _context: Context) -> Result:
        return _said("This tool intentionally returns an error for testing", is_error=True)

    async def _progress(self, context: Context) -> Result:
        for done in (0, 50, 100):
            await context.session.report_progress(done, 100)
            await anyio.lowlevel.checkpoint()
        return _said("done")

    async def _missing_capability(self, context: Context) -> Result:
        able = context.session.client_capabilities
        if able is None or able.sampling is None:
            needed: Result = {"requiredCapabilities": {"sampling": {}}}
            raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "this tool needs sampling", needed)
        return _said("sampled")

    async def _stream_then_ask(self, context: Context) -> Result:
        await context.session.report_progress(1, 2)
        return ask({"user_name": form("What is your name?", "name")})

    async def _log(self, context: Context) -> Result:
        await log(context, "for those who asked")
        return _said("logged")

    async def _change_tools(self, _context: Context) -> Result:
        await self._bus.publish(ToolsListChanged())
        return _said("changed")

    async def _change_prompts(self, _context: Context) -> Result:
        await self._bus.publish(PromptsListChanged())
        return _said("changed")

    async def _ask_what_is_possible(self, context: Context) -> Result:
        able = context.session.client_capabilities
        possible = {
            "user_name": (able and able.elicitation, form("What is your name?", "name")),
            "question": (able and able.sampling, sampling("What is the capital of France?")),
        }
        body = {key: request for key, (can, request) in possible.items() if can is not None}
        return ask(body) if body else _said("nothing can be asked")


async def _get_prompt(_context: Context, params: GetPromptRequestParams) -> Result:
    if params.name == "test_input_required_result_prompt":
        question = next_question(params.name, params.input_responses, params.request_state)
        if question:
            return question
        return {"messages": [{"role": "user", "content": text("In context.")}], "resultType": "complete"}
    messages = prompt_messages(params.name, params.arguments or {})
    if messages is None:
        raise MCPError(INVALID_PARAMS, f"Unknown prompt: {params.name}")
    return {"messages": messages, "resultType": "complete"}


async def _read_resource(_context: Context, params: ReadResourceRequestParams) -> Result:
    uri = str(params.uri)
    result = RESOURCES.get(uri)
    if inside := re.fullmatch(r"test://template/([^/]+)/data", uri):
        data = {"id": inside[1], "templateTest": True, "data": f"Data for ID: {inside[1]}"}
        result = {"mimeType": "application/json", "text": json.dumps(data)}
    if result is None:
        raise MCPError(INVALID_PARAMS, "Resource not found", {"uri": uri})
    return {"contents": [{"uri": uri, **result}], "resultType": "complete"}


async def _complete(_context: Context, params: CompleteRequestParams) -> Result:
    existing = [word for word in ("paris", "park", "party", "test") if word.startswith(params.argument.value)]
    return {"completion": {"values": existing, "total": len(existing), "hasMore": False}, "resultType": "complete"}
