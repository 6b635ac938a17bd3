"""Both products as processes, with the golden set in them, and answers to requests."""

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from tests.conftest import Installation
from tests.e2e.commands import command, run
from tests.e2e.gateway.machines import Machine, mcp_server, new_machine, until
from tests.e2e.tenants.service import own_installation, served
from tests.recording.digests import Kept, kept
from tests.recording.requests import GOLDEN, Asked, commands, items, servers
from toolscript.core.embedding.static_table import BUILTIN, FOLDER
from toolscript.gateway.discovery import RunningFile

ADMIN = "of the recording"
AT_ONCE = 8
SECONDS = 120.0

Say = Callable[[str], None]
Recorded = dict[str, Kept]


@dataclass
class Answering:
    """Asks one product by HTTP and over MCP, and keeps what it answers."""

    http: httpx2.AsyncClient
    mcp: Client
    say: Say
    recorded: Recorded = field(default_factory=dict)

    async def ask_all(self, asked: Sequence[Asked]) -> None:
        places = asyncio.Semaphore(AT_ONCE)

        async def one(request: Asked) -> None:
            async with places:
                self.recorded[request.name] = await self._answer(request)

        for start in range(0, len(asked), 100):
            await asyncio.gather(*map(one, asked[start : start + 100]))
            self.say(f"{asked[0].of}: {min(start + 100, len(asked))} of {len(asked)}")

    async def _answer(self, request: Asked) -> Kept:
        if request.tool:
            try:
                result = await self.mcp.call_tool(request.tool, request.body or {})
            except MCPError as refusal:
                return kept("refused", {"code": refusal.error.code, "message": refusal.error.message})
            return kept("error" if result.is_error else "answered", result.structured_content or _texts(result))
        answer = await self.http.request(
            request.method,
            request.path,
            json=request.body,
            params={name: str(value) for name, value in request.parameters.items()} or None,
        )
        is_json = answer.headers.get("content-type", "").startswith("application/json")
        return kept(answer.status_code, answer.json() if is_json else answer.text)


def _texts(result: object) -> list[str]:
    return [str(getattr(part, "text", "")) for part in getattr(result, "content", ())]


@asynccontextmanager
async def answering(url: str, say: Say, token: str, admin: str = "") -> AsyncIterator[Answering]:
    """`admin` is the token of requests by HTTP; without it that of clients of MCP is."""
    async with AsyncExitStack() as stack:

        async def client(bearer: str) -> httpx2.AsyncClient:
            headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
            return await stack.enter_async_context(
                httpx2.AsyncClient(base_url=url, headers=headers, timeout=SECONDS, trust_env=False)
            )

        http, streams = (
            await client(admin or token),
            streamable_http_client(f"{url}/mcp", http_client=await client(token)),
        )
        yield Answering(http, await stack.enter_async_context(Client(streams)), say)


@contextmanager
def machine() -> Iterator[Machine]:
    """Yield a person's machine whose config has a server for each of the golden set."""
    with tempfile.TemporaryDirectory() as folder:
        made = new_machine(Path(folder) / "machine", FOLDER).also(TOOLSCRIPT_SEARCH_MODEL=BUILTIN)
        file = str(GOLDEN / "tools.jsonl")
        made.configure({name.replace(" ", "-"): mcp_server("catalog", file, name) for name in servers()})
        yield made


async def record_gateway(asked: Sequence[Asked], say: Say) -> Recorded:
    with machine() as made:
        with made.gateway() as gateway:
            # Thirty servers start at once, which takes a busy machine a while.
            until(lambda: gateway.health()["items"] == len(items()), "all items", SECONDS * 3)
            gateway.until_embedded(len(items()))
            recorded = {f"toolscript {' '.join(arguments)}": _said(made, *arguments) for arguments in commands()}
            say(f"commands: {len(recorded)}")
            running = RunningFile(made.data / "run").read()
            async with answering(gateway.url, say, running.token if running is not None else "") as product:
                await product.ask_all(asked)
        return recorded | product.recorded


def _said(made: Machine, *arguments: str) -> Kept:
    done = subprocess.run(
        [*command(*arguments), "--json"],
        env=made.whole_environment(),
        cwd=made.project,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    try:
        return kept(done.returncode, json.loads(done.stdout))
    except json.JSONDecodeError:
        return kept(done.returncode, done.stdout)


def record_service(parts: Sequence[Sequence[Asked]], say: Say) -> Recorded:
    with tempfile.TemporaryDirectory() as folder, own_installation() as installation:
        filled = Installation({**installation.environment, "TOOLSCRIPT_ADMIN_TOKEN": ADMIN})
        run(filled.environment, "sync", str(GOLDEN / "tools.jsonl"), "--source", "golden")
        say("the catalog is filled")
        with served(filled) as (service, issuer):
            run(service.environment, "ingest", str(_library(Path(folder))), "--base", folder, "--type", "book")
            say("the library is filled")
            return asyncio.run(_ask_service(service.url, issuer.token("acme"), parts, say))


async def _ask_service(url: str, token: str, parts: Sequence[Sequence[Asked]], say: Say) -> Recorded:
    recorded: Recorded = {}
    for asked in parts:
        is_catalog = asked[0].of in ("tools", "catalog", "skills")
        async with answering(url, say, token, ADMIN if is_catalog else "") as product:
            if asked[0].of == "documents":
                await _put(product.http)
            await product.ask_all(asked)
        recorded |= product.recorded
    return recorded


async def _put(http: httpx2.AsyncClient) -> None:
    """Put the golden set's descriptions as a tenant's documents."""
    documents = [
        {
            "id": item["id"],
            "text": f"{item['name']}. {item['description']}",
            "metadata": {"server": item["server"]},
        }
        for item in items()
    ]
    for start in range(0, len(documents), 50):
        answer = await http.put("/api/v1/documents", json={"documents": documents[start : start + 50]})
        assert answer.status_code < 300, answer.text


def _library(folder: Path) -> Path:
    """Write a book with a chapter for each server of the golden set."""
    shelf = folder / "shelf"
    shelf.mkdir()
    for server in servers():
        own = [item for item in items() if item["server"] == server]
        chapters = "\n\n".join(f"## {item['name']}\n\n{item['description']}" for item in own)
        (shelf / f"{server}.md").write_text(f"# {server}\n\n{chapters}\n", "utf-8")
    return shelf


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
