"""One driver for each surface: operations.md says what they have in common.

A driver translates, and nothing else. Operations that a surface does not have are not in its `operations`.
"""

import json
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import httpx2
from mcp import Client as McpClient
from mcp.client.streamable_http import streamable_http_client

from tests.e2e.commands import command, environment
from tests.e2e.gateway.machines import Machine
from toolscript import AsyncClient, Client, Gateway, ToolscriptError

Json = dict[str, Any]
Do = Callable[[str, Json], Awaitable[Json]]


class Driver(Protocol):
    name: str

    def has(self, operation: str, arguments: Json) -> bool: ...
    async def do(self, operation: str, arguments: Json) -> Json: ...


def _failed(error: ToolscriptError) -> Json:
    return {"error": {"code": error.code, "message": error.message}}


def _as_json(value: Any) -> Any:
    return value.to_json() if hasattr(value, "to_json") else value


def _call_of(operation: str, arguments: Json) -> tuple[tuple[Any, ...], Json]:
    """Return the positional and keyword arguments of a Python client's method."""
    first = {"tools.call": "id", "tools.get": "id", "skills.get": "id", "documents.get": "id"}
    first |= {"documents.delete": "ids", "documents.put": "documents", "tools.types": "names"}
    name = first.get(operation, "query")
    positional = [arguments[name]] if name in arguments else []
    if operation == "tools.call":
        positional.append(arguments["arguments"])
        return tuple(positional), {}
    return tuple(positional), {key: value for key, value in arguments.items() if key != name}


class InProcess:
    """`Gateway.open()`, in this process."""

    name = "in-process"

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def has(self, operation: str, arguments: Json) -> bool:
        return operation.startswith("tools.") or operation == "servers.list"

    async def do(self, operation: str, arguments: Json) -> Json:
        given = {name: value for name, value in arguments.items() if name != "page_size"}
        positional, named = _call_of(operation, given)
        try:
            if operation == "tools.list":
                return {"answer": {"results": [tool.to_json() async for tool in self._gateway.tools(**named)]}}
            if operation == "servers.list":
                return {"answer": {"results": [server.to_json() for server in await self._gateway.servers()]}}
            result = await getattr(self._gateway, operation.removeprefix("tools."))(*positional, **named)
        except ToolscriptError as error:
            return _failed(error)
        return {"answer": {"module": result} if operation == "tools.types" else _as_json(result)}


class PythonSync:
    name = "Python, threads"

    def __init__(self, client: Client) -> None:
        self._client = client

    def has(self, operation: str, arguments: Json) -> bool:
        return True

    async def do(self, operation: str, arguments: Json) -> Json:
        resource, _, method = operation.partition(".")
        positional, named = _call_of(operation, arguments)
        try:
            result = getattr(getattr(self._client, resource), method)(*positional, **named)
            if hasattr(result, "pages"):
                return {"answer": {"results": [entry.to_json() for entry in result]}}
        except ToolscriptError as error:
            return _failed(error)
        return {"answer": {"module": result} if operation == "tools.types" else _as_json(result)}


class PythonAsync:
    name = "Python, asyncio"

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    def has(self, operation: str, arguments: Json) -> bool:
        return True

    async def do(self, operation: str, arguments: Json) -> Json:
        resource, _, method = operation.partition(".")
        positional, named = _call_of(operation, arguments)
        try:
            result = getattr(getattr(self._client, resource), method)(*positional, **named)
            if hasattr(result, "pages"):
                return {"answer": {"results": [entry.to_json() async for entry in result]}}
            answer = await result
        except ToolscriptError as error:
            return _failed(error)
        return {"answer": {"module": answer} if operation == "tools.types" else _as_json(answer)}


class Program:
    """A program that reads operations from stdin and answers on stdout."""

    name = "TypeScript"

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def has(self, operation: str, arguments: Json) -> bool:
        return True

    async def do(self, operation: str, arguments: Json) -> Json:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({"operation": operation, "arguments": arguments}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the driver ended with {self._process.poll()}"
        return dict(json.loads(line))


@contextmanager
def program(words: Sequence[str], url: str, token: str) -> Iterator[Program]:
    variables = environment({"TOOLSCRIPT_URL": url, "TOOLSCRIPT_TOKEN": token})
    with subprocess.Popen(
        words, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Program(process)


class Http:
    """Plain requests of `/api/v1`; the other surfaces are compared with it."""

    name = "HTTP"
    LISTS: Mapping[str, str] = {
        "tools.list": "tools",
        "servers.list": "servers",
        "skills.list": "skills",
        "documents.list": "documents",
        "knowledge.list_sources": "knowledge/sources",
    }

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    def has(self, operation: str, arguments: Json) -> bool:
        return True

    async def do(self, operation: str, arguments: Json) -> Json:
        if operation in self.LISTS:
            return await self._list(self.LISTS[operation], arguments)
        resource, _, method = operation.partition(".")
        if operation == "tools.types":
            names = ",".join(arguments["names"])
            answer = await self._client.get("/runtime/tools.ts", params={"filter": names, "compact": "false"})
            return {"answer": {"module": answer.text}} if answer.status_code < 400 else _error_of(answer)
        if method == "get":
            return _answer_of(await self._client.get(f"/api/v1/{resource}/{quote(str(arguments['id']), safe='')}"))
        if operation == "documents.put":
            lines = "\n".join(json.dumps(document) for document in arguments["documents"])
            headers = {"content-type": "application/x-ndjson"}
            return _put_of(await self._client.put("/api/v1/documents", content=lines, headers=headers))
        return _answer_of(await self._client.post(f"/api/v1/{resource}/{method}", json=arguments))

    async def _list(self, path: str, arguments: Json) -> Json:
        query = {name: value for name, value in arguments.items() if name != "page_size"}
        query |= {"limit": arguments["page_size"]} if "page_size" in arguments else {}
        results: list[Json] = []
        cursor = ""
        while True:
            answer = _answer_of(await self._client.get(f"/api/v1/{path}", params={**query, "cursor": cursor}))
            if "error" in answer:
                return answer
            results += answer["answer"]["results"]
            cursor = answer["answer"]["next_cursor"]
            if not cursor:
                return {"answer": {"results": results}}


def _answer_of(answer: httpx2.Response) -> Json:
    return {"answer": answer.json()} if answer.status_code < 400 else _error_of(answer)


def _error_of(answer: httpx2.Response) -> Json:
    error = answer.json()["error"]
    return {"error": {"code": error["code"], "message": error["message"]}}


def _put_of(answer: httpx2.Response) -> Json:
    if answer.status_code >= 400 or not answer.headers["content-type"].startswith("application/x-ndjson"):
        return _answer_of(answer)
    *results, last = map(json.loads, answer.text.splitlines())
    return {"answer": {"results": results, "counts": last["counts"]}}


class Mcp:
    """The MCP tools, through a client of the SDK. Their errors are texts: message and hint, without a code."""

    name = "MCP"
    GATEWAY: Mapping[str, tuple[str, tuple[str, ...]]] = {
        "tools.search": ("search_tools", ("query", "limit", "threshold")),
        "tools.call": ("call_tool", ("id", "arguments")),
    }
    SERVICE: Mapping[str, tuple[str, tuple[str, ...]]] = {
        "tools.search": ("search_tools", ("query", "limit", "threshold")),
        "documents.search": ("search_documents", ("query", "limit", "filters")),
        "knowledge.search": ("search_knowledge", ("query", "limit")),
    }

    def __init__(self, client: McpClient, tools: Mapping[str, tuple[str, tuple[str, ...]]]) -> None:
        self._client = client
        self._tools = tools

    def has(self, operation: str, arguments: Json) -> bool:
        return operation in self._tools and set(arguments) <= {*self._tools[operation][1]}

    async def do(self, operation: str, arguments: Json) -> Json:
        named = dict(arguments)
        if operation == "tools.call":
            named["tool"] = named.pop("id")
        result = await self._client.call_tool(self._tools[operation][0], named)
        data = result.model_dump(by_alias=True, mode="json")
        if operation == "tools.call" and not _is_ours(data):
            content = {"content": data["content"], "structured_content": data.get("structuredContent")}
            return {"answer": {**content, "is_error": data["isError"]}}
        if data["isError"]:
            return {"error": {"code": None, "message": data["content"][0]["text"]}}
        return {"answer": _renamed(data["structuredContent"])}


def _is_ours(data: Json) -> bool:
    """Return whether an error is the gateway's and not the tool's own, which says that it went wrong."""
    return bool(data["isError"]) and "it went wrong" not in data["content"][0]["text"]


def _renamed(data: Json) -> Json:
    """Return an answer of MCP, or of `--json` of the gateway's commands, in the words of the API."""
    hits = [
        {
            **hit,
            "name": hit.get("tool") or hit.get("toolId") or hit.get("name"),
            "kind": hit.get("kind") or hit.get("type") or "tool",
        }
        for hit in data["results"]
    ]
    return {"results": hits, "metadata": {"good_match": data.get("good_match"), **data.get("metadata", {})}}


class Commands:
    """The command line with `--json`. Exit codes 1 and 2 are answers, too."""

    name = "command line"

    def __init__(self, variables: Mapping[str, str], folder: Path) -> None:
        self._variables = variables
        self._folder = folder

    GATEWAY = ("tools.search", "tools.call", "tools.types")
    SERVICE = ("tools.search", "skills.search", "documents.search", "documents.get", "documents.delete")

    def has(self, operation: str, arguments: Json) -> bool:
        raise NotImplementedError

    def run(self, *arguments: str) -> Json:
        done = subprocess.run(
            command(*arguments, "--json"),
            env=dict(self._variables),
            cwd=self._folder,
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )
        if done.returncode == 2:
            line = next(line for line in done.stderr.splitlines() if line.startswith("{"))
            error = json.loads(line)["error"]
            return {"error": {"code": error["code"], "message": error["message"]}}
        assert done.returncode in (0, 1), f"{arguments}: {done.stderr}"
        return {"answer": json.loads(done.stdout)}


def _options(arguments: Json, *names: str) -> list[str]:
    return [word for name in names if name in arguments for word in (f"--{name}", str(arguments[name]))]


class GatewayCommands(Commands):
    def has(self, operation: str, arguments: Json) -> bool:
        return operation in self.GATEWAY and "include_schemas" not in arguments

    async def do(self, operation: str, arguments: Json) -> Json:
        if operation == "tools.types":
            return self.run("get-types", *arguments["names"])
        if operation == "tools.call":
            result = self.run("call", arguments["id"], json.dumps(arguments["arguments"]))
            if "error" in result:
                return result
            data = result["answer"]
            content = {"content": data["content"], "structured_content": data.get("structuredContent")}
            return {"answer": {**content, "is_error": data["isError"]}}
        result = self.run("search", arguments["query"], *_options(arguments, "limit", "kind", "threshold"))
        return result if "error" in result else {"answer": _renamed(result["answer"])}


class ServiceCommands(Commands):
    def has(self, operation: str, arguments: Json) -> bool:
        # A number that an option does not take is wrong usage, which is answered as text.
        return operation in self.SERVICE and arguments.get("limit") != 0

    async def do(self, operation: str, arguments: Json) -> Json:
        if operation == "documents.get":
            return self.run("documents", "get", arguments["id"])
        if operation == "documents.delete":
            return self.run("documents", "delete", *arguments["ids"])
        words = ["documents", "search"] if operation == "documents.search" else ["tools", "search"]
        words = ["tools", "skills"] if operation == "skills.search" else words
        schemas = ["--schemas"] if arguments.get("include_schemas") else []
        filters = ["--filter", json.dumps(arguments["filters"])] if "filters" in arguments else []
        options = _options(arguments, "limit", "kind", "threshold")
        return self.run(*words, arguments["query"], *options, *schemas, *filters)


@asynccontextmanager
async def gateway_drivers(
    machine: Machine, url: str, in_process: Gateway, typescript: Sequence[str]
) -> AsyncIterator[list[Driver]]:
    async with AsyncExitStack() as stack:
        http = httpx2.AsyncClient(base_url=url, trust_env=False, timeout=60)
        mcp = await stack.enter_async_context(McpClient(f"{url}/mcp"))
        yield [
            Http(await stack.enter_async_context(http)),
            InProcess(in_process),
            PythonSync(stack.enter_context(Client(url))),
            PythonAsync(await stack.enter_async_context(AsyncClient(url))),
            stack.enter_context(program(typescript, url, "")),
            Mcp(mcp, Mcp.GATEWAY),
            GatewayCommands(machine.whole_environment(), machine.project),
        ]


@asynccontextmanager
async def service_drivers(
    url: str, token: str, folder: Path, typescript: Sequence[str]
) -> AsyncIterator[list[Driver]]:
    headers = {"authorization": f"Bearer {token}"}
    variables = environment({"TOOLSCRIPT_SERVICE_URL": url, "TOOLSCRIPT_TOKEN": token})
    async with AsyncExitStack() as stack:
        http = httpx2.AsyncClient(base_url=url, headers=headers, trust_env=False, timeout=60)
        with_token = httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60)
        connection = streamable_http_client(f"{url}/mcp", http_client=await stack.enter_async_context(with_token))
        mcp = McpClient(connection)
        yield [
            Http(await stack.enter_async_context(http)),
            PythonSync(stack.enter_context(Client(url, token=token))),
            PythonAsync(await stack.enter_async_context(AsyncClient(url, token=token))),
            stack.enter_context(program(typescript, url, token)),
            Mcp(await stack.enter_async_context(mcp), Mcp.SERVICE),
            ServiceCommands(variables, folder),
        ]
