"""The meta-tools for clients that know nothing but tools: get a prompt, and read a resource."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

from toolscript.core.daemon_threads import OF_SERVERS
from toolscript.core.errors import Forbidden
from toolscript.core.items import Item, ItemKind, JsonObject, tool_id
from toolscript.core.mcp.answers import PICTURES, compact_json
from toolscript.core.mcp.arguments import require_known, text, wrong
from toolscript.core.mcp.schemas import READ_ONLY, STRING, closed
from toolscript.core.mcp_client.model import CallResult
from toolscript.gateway.mcp.wording import answered, refused
from toolscript.gateway.model import GET_PROMPT, READ_RESOURCE, McpGateway

PROMPT_TOOL, RESOURCE_TOOL = "get_prompt", "read_resource"

# What servers answer comes from anywhere.
_READS: JsonObject = {**READ_ONLY, "openWorldHint": True}
ENTRY_TOOLS: tuple[JsonObject, ...] = (
    {
        "name": PROMPT_TOOL,
        "title": "Get a prompt",
        "description": "Get a prompt that search_tools found with kind 'prompt': instructions for a task.",
        "inputSchema": closed({"prompt": STRING, "arguments": {"type": "object"}}, "prompt"),
        "annotations": _READS,
    },
    {
        "name": RESOURCE_TOOL,
        "title": "Read a resource",
        "description": "Read a resource by its URI, from search_tools with kind 'resource' or from a result.",
        "inputSchema": closed({"uri": STRING}, "uri"),
        "annotations": _READS,
    },
)

Fitting = Callable[[CallResult], CallResult]


class EntryTools:
    """`fitting` makes a result fit into a model's context."""

    def __init__(self, gateway: McpGateway, fitting: Fitting) -> None:
        self._gateway = gateway
        self._fitting = fitting
        self.by_name: Mapping[str, Callable[[JsonObject], Awaitable[CallResult]]] = {
            PROMPT_TOOL: self._get_prompt,
            RESOURCE_TOOL: self._read_resource,
        }

    async def _get_prompt(self, given: JsonObject) -> CallResult:
        require_known(PROMPT_TOOL, given, ("prompt", "arguments"))
        arguments = given.get("arguments") or {}
        if not isinstance(arguments, Mapping):
            raise wrong("arguments", "must be an object")
        # MCP has texts alone here, and models write numbers.
        texts = {
            name: value if isinstance(value, str) else compact_json(value) for name, value in arguments.items()
        }
        params = {"name": text(given, "prompt"), **({"arguments": texts} if texts else {})}
        return await self._sent(GET_PROMPT, params, lambda answer: _messages(answer.get("messages")))

    async def _read_resource(self, given: JsonObject) -> CallResult:
        require_known(RESOURCE_TOOL, given, ("uri",))
        params = {"uri": text(given, "uri")}
        return await self._sent(READ_RESOURCE, params, lambda answer: _contents(answer.get("contents")))

    async def _sent(
        self, method: str, params: JsonObject, blocks: Callable[[JsonObject], Iterator[JsonObject]]
    ) -> CallResult:
        async def answer() -> CallResult:
            try:
                content = tuple(blocks(await self._gateway.request(method, params)))
            except Forbidden as refusal:
                return refused(refusal)
            read = CallResult(content or (_text("It is empty."),))
            return await OF_SERVERS.run(lambda: self._fitting(read))

        return await answered(answer)


def _messages(messages: object) -> Iterator[JsonObject]:
    """Yield what a model reads of a prompt. Who says it matters only where both say something."""
    found: Sequence[Any] = messages if isinstance(messages, list) else []
    roles = {message.get("role") for message in found if isinstance(message, Mapping)}
    for message in found:
        content = message.get("content") if isinstance(message, Mapping) else None
        if not isinstance(content, Mapping):
            continue
        if len(roles) > 1:
            yield _text(f"{message.get('role')}:")
        yield content


def _contents(contents: object) -> Iterator[JsonObject]:
    for part in contents if isinstance(contents, list) else []:
        if not isinstance(part, Mapping):
            continue
        kind = str(part.get("mimeType") or "")
        if isinstance(part.get("text"), str):
            yield _text(str(part["text"]))
        elif kind.partition("/")[0] in PICTURES and isinstance(part.get("blob"), str):
            yield {"type": kind.partition("/")[0], "data": part["blob"], "mimeType": kind}
        else:
            size = len(str(part.get("blob") or "")) * 3 // 4
            yield _text(f"[{part.get('uri')}: {size:,} bytes of {kind or 'an unknown type'}]")


def _text(words: str) -> JsonObject:
    return {"type": "text", "text": words}


def use_of(item: Item) -> dict[str, object]:
    """Return what a search result says of a prompt or resource: its kind, and how it is used."""
    if item.kind is ItemKind.TOOL:
        return {}
    if item.kind is ItemKind.PROMPT:
        return {"kind": item.kind.value, "use": f"{PROMPT_TOOL} {tool_id(item.server, item.name)}"}
    about = item.annotations or {}
    uri = about.get("uri") or about.get("uriTemplate") or ""
    return {"kind": item.kind.value, "use": f"{RESOURCE_TOOL} {' '.join(str(uri).split())}"}
