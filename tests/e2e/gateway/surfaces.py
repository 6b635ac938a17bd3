"""The interfaces of a gateway, with results in one common form."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import anyio
from mcp import Client, StdioServerParameters, stdio_client

from tests.e2e.commands import command
from tests.e2e.gateway.machines import WAIT_SECONDS, Gateway, Machine
from toolscript.gateway.model import DEFAULT_LIMIT


class Found(NamedTuple):
    tool: str
    confidence: float
    reason: str


@dataclass(frozen=True)
class Answer:
    """Search result of any interface. Hints differ: without a gateway, they mention the age of the tools."""

    found: tuple[Found, ...]
    total: int
    semantic: bool

    @property
    def tools(self) -> list[str]:
        return [item.tool for item in self.found]


@dataclass(frozen=True)
class Called:
    text: str
    data: object
    is_error: bool


class Surface(Protocol):
    async def search(self, *queries: str) -> list[Answer]: ...
    async def types(self, *tools: str) -> str: ...
    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Called: ...


def _found(hits: Sequence[Mapping[str, Any]], name: str) -> tuple[Found, ...]:
    return tuple(Found(hit[name], round(hit["confidence"], 2), hit["reason"]) for hit in hits)


def answer_of(data: Mapping[str, Any]) -> Answer:
    """Return the result from the JSON of `--json` or HTTP."""
    return Answer(_found(data["results"], "toolId"), data["totalResults"], data["semantic"])


def _called(data: Mapping[str, Any]) -> Called:
    texts = [block["text"] for block in data["content"]]
    return Called("\n".join(texts), data.get("structuredContent"), data["isError"])


@dataclass(frozen=True)
class CommandLine:
    """The command line, with or without a running gateway on the machine."""

    machine: Machine

    async def search(self, *queries: str) -> list[Answer]:
        """Run all queries in one process: starting one takes longer than a search."""
        done = self.machine.run("search", "--json", standard_input="".join(f"{query}\n" for query in queries))
        return [answer_of(json.loads(line)) for line in done.stdout.splitlines()]

    async def types(self, *tools: str) -> str:
        return self.machine.run("get-types", "--compact", *tools).stdout

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Called:
        code = 1 if tool.endswith("fail") else 0
        return _called(self.machine.json("call", tool, json.dumps(arguments), code=code))


@dataclass(frozen=True)
class Http:
    gateway: Gateway

    async def search(self, *queries: str) -> list[Answer]:
        return [answer_of(self.gateway.search(query)) for query in queries]

    async def types(self, *tools: str) -> str:
        request = {"filter": ",".join(tools), "compact": "true"}
        return self.gateway.ask("/runtime/tools.ts", params=request).text

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Called:
        return _called(self.gateway.call(tool, **arguments).json())


@dataclass(frozen=True)
class Mcp:
    """The three MCP tools, through a client of the SDK."""

    client: Client

    async def search(self, *queries: str) -> list[Answer]:
        """Search with the limit of the other interfaces: the default over MCP is five."""
        data = [await self._data("search_tools", {"query": query, "limit": DEFAULT_LIMIT}) for query in queries]
        return [Answer(_found(item["results"], "tool"), item["total"], item["semantic"]) for item in data]

    async def until_model(self, name: str) -> None:
        """Wait for the model of the machine: a gateway that was just started answers by the built-in one."""
        with anyio.fail_after(WAIT_SECONDS):
            answer = await self._data("search_tools", {"query": "anything"})
            while answer["model"] != name:
                await anyio.sleep(0.1)
                answer = await self._data("search_tools", {"query": "anything"})

    async def types(self, *tools: str) -> str:
        return str((await self._data("describe_tool", {"tools": [*tools], "format": "types"}))["types"])

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Called:
        result = await self.client.call_tool("call_tool", {"tool": tool, "arguments": dict(arguments)})
        return _called(result.model_dump(by_alias=True))

    async def _data(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        result = await self.client.call_tool(name, arguments)
        assert not result.is_error, result.content
        return dict(result.structured_content or {})


@asynccontextmanager
async def mcp_over_http(gateway: Gateway) -> AsyncIterator[Mcp]:
    async with Client(f"{gateway.url}/mcp") as client:
        yield Mcp(client)


@asynccontextmanager
async def mcp_over_stdio(machine: Machine) -> AsyncIterator[Mcp]:
    """`toolscript mcp`, as a client starts it."""
    program, *arguments = command("mcp")
    process = StdioServerParameters(
        command=program, args=arguments, env=machine.whole_environment(), cwd=machine.project
    )
    async with Client(stdio_client(process)) as client:
        yield Mcp(client)
