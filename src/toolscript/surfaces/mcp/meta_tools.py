"""The three tools themselves: a call is a question to the gateway, and every answer can be read by a model."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from toolscript.errors import NotFound, ToolscriptError
from toolscript.model.gateway import LocalQuery
from toolscript.model.items import Item, ItemKind, JsonObject
from toolscript.model.servers import CallResult
from toolscript.model.tool_ids import SEPARATOR, split_tool_id, tool_id
from toolscript.ports import Gateway
from toolscript.surfaces.mcp import answers
from toolscript.surfaces.mcp.answering import answered
from toolscript.surfaces.mcp.answers import Unknown
from toolscript.surfaces.mcp.arguments import CallAsked, DescribeAsked, call_asked, describe_asked, search_asked
from toolscript.surfaces.mcp.definitions import CALL, DESCRIBE, SEARCH
from toolscript.surfaces.mcp.large_results import READ, LargeResults

NEAREST = 3


class MetaTools:
    """Raises InvalidRequest for arguments that are wrong; any other failure is an answer that says so."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._results = LargeResults()
        self._by_name: dict[str, Callable[[JsonObject], Awaitable[CallResult]]] = {
            SEARCH: self._search,
            DESCRIBE: self._describe,
            CALL: self._call,
        }

    def has(self, name: str) -> bool:
        return name in self._by_name

    async def call(self, name: str, arguments: JsonObject) -> CallResult:
        return await self._by_name[name](arguments)

    async def _search(self, arguments: JsonObject) -> CallResult:
        asked = search_asked(arguments)

        async def answer() -> CallResult:
            answer = await self._gateway.search(asked.query)
            shown = answer.hits or answer.near_misses
            types = ""
            if asked.detail == "types" and shown:
                ids = tuple(tool_id(hit.item.server, hit.item.name) for hit in shown)
                types = await self._gateway.typescript(ids, compact=True)
            return answers.found(answer, with_schemas=asked.detail == "schema", types=types)

        return await answered(answer)

    async def _describe(self, arguments: JsonObject) -> CallResult:
        asked = describe_asked(arguments)
        return await answered(lambda: self._described(asked))

    async def _described(self, asked: DescribeAsked) -> CallResult:
        names = await self._full_names(asked.tools)
        items = await self._tools(names)
        unknown = [await self._unknown(name) for name in names if name not in items]
        if not items:
            return answers.failed_with("\n".join(answers.no_such_tool(one) for one in unknown))
        types = await self._gateway.typescript(tuple(items), compact=True) if asked.as_types else ""
        return answers.described(list(items.values()), unknown, types)

    async def _call(self, arguments: JsonObject) -> CallResult:
        asked = call_asked(arguments)
        return await answered(lambda: self._called(asked))

    async def _called(self, asked: CallAsked) -> CallResult:
        if asked.tool == READ:
            return self._results.read(asked.arguments)
        [tool] = await self._full_names([asked.tool])
        try:
            result = await self._gateway.call(tool, asked.arguments)
            # Megabytes take a while to be gone through, and others are answered meanwhile.
            return await asyncio.to_thread(self._results.fitting, result)
        except NotFound:
            return answers.failed_with(answers.no_such_tool(await self._unknown(tool)))

    async def _full_names(self, names: Sequence[str]) -> list[str]:
        """A tool's own name will do where one server alone has it."""
        if all(SEPARATOR in name for name in names):
            return [*names]
        tools = [item for item in await self._gateway.items() if item.kind is ItemKind.TOOL]
        times = Counter(item.name for item in tools)
        full = {item.name: tool_id(item.server, item.name) for item in tools if times[item.name] == 1}
        return [name if SEPARATOR in name else full.get(name, name) for name in names]

    async def _tools(self, names: Sequence[str]) -> dict[str, Item]:
        """The tools of these names, in the order of the names."""
        listed = await self._gateway.items(tuple(names))
        tools = {tool_id(item.server, item.name): item for item in listed if item.kind is ItemKind.TOOL}
        return {name: tools[name] for name in names if name in tools}

    async def _unknown(self, name: str) -> Unknown:
        try:
            words = " ".join(split_tool_id(name))
            answer = await self._gateway.search(LocalQuery(words[:200], NEAREST, 0.0))
        except ToolscriptError:
            return Unknown(name)
        hits = (answer.hits or answer.near_misses)[:NEAREST]
        return Unknown(name, tuple(tool_id(hit.item.server, hit.item.name) for hit in hits))
