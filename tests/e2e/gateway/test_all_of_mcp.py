"""All that a server says in MCP reaches its client: at /mcp and through `toolscript mcp`, in both generations."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp_types import (
    CallToolResult,
    CreateMessageResult,
    ElicitResult,
    ListRootsResult,
    PromptReference,
    Root,
    TextContent,
)
from pydantic import FileUrl

from tests.e2e.commands import command, environment
from tests.support.npm_servers_installed import entry_point
from tests.support.reserved_ports import reserved_port
from tests.unit.core.mcp_client.test_npm_servers import everything_over_http
from tests.unit.gateway.mcp.through import gateway_with, until_listed

pytestmark = [
    pytest.mark.requirement("GW-003"),
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]
SECONDS = 60.0
DOCUMENT = "demo://resource/static/document/architecture.md"
CHANGING = "demo://resource/dynamic/text/1"
OVER = ("http", "stdio")
MODES = ("legacy", "2026-07-28")


@dataclass(frozen=True)
class Place:
    """A running gateway, and the home folder of its user."""

    home: Path
    url: str


@asynccontextmanager
async def place_with(home: Path, server: dict[str, object]) -> AsyncIterator[Place]:
    with gateway_with(home, {"everything": server}) as url:
        await until_listed(url, SECONDS)
        yield Place(home, url)


@pytest.fixture(scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    server: dict[str, object] = {"command": "node", "args": [entry_point("server-everything"), "stdio"]}
    async with place_with(tmp_path_factory.mktemp("home"), server) as place:
        yield place


@dataclass
class Person:
    name: str = "Ada"
    asked: list[str] = field(default_factory=list)
    progress: list[Any] = field(default_factory=list)
    logs: list[Any] = field(default_factory=list)
    told: asyncio.Queue[str] = field(default_factory=asyncio.Queue)

    async def elicit(self, _context: object, params: Any) -> ElicitResult:
        self.asked.append(params.message)
        return ElicitResult(action="accept", content={"name": self.name, "check": True})

    async def sample(self, _context: object, _params: Any) -> CreateMessageResult:
        self.asked.append("sampling")
        said = TextContent(type="text", text=f"{self.name} thinks")
        return CreateMessageResult(role="assistant", content=said, model="m")

    async def roots(self, _context: object) -> ListRootsResult:
        self.asked.append("roots")
        return ListRootsResult(roots=[Root(uri=FileUrl("file:///work-of-ada"), name="ada")])

    async def on_progress(self, progress: float, total: float | None, _message: str | None) -> None:
        self.progress.append((progress, total))

    async def on_log(self, params: Any) -> None:
        self.logs.append(params.logger)

    async def on_message(self, message: Any) -> None:
        self.told.put_nowait(type(message).__name__)


@asynccontextmanager
async def client_of(place: Place, over: str, mode: str, person: Person | None) -> AsyncIterator[Client]:
    """Return a client; without a person, one that nobody can be asked through."""
    program, *arguments = command("mcp")
    own = {"HOME": str(place.home), "TOOLSCRIPT_SEARCH_MODEL": str(place.home)}
    process = StdioServerParameters(command=program, args=arguments, env=environment(own), cwd=place.home)
    asked: dict[str, Any] = {}
    if person is not None:
        asked = {
            "elicitation_callback": person.elicit,
            "sampling_callback": person.sample,
            "list_roots_callback": person.roots,
            "logging_callback": person.on_log,
            "message_handler": person.on_message,
        }
    target: Any = f"{place.url}/mcp" if over == "http" else stdio_client(process)
    async with asyncio.timeout(2 * SECONDS), Client(target, mode=mode, **asked) as client:
        yield client


async def call(client: Client, tool: str, person: Person | None = None, **arguments: Any) -> CallToolResult:
    given = {"tool": f"everything__{tool}", "arguments": arguments}
    progress: Any = person.on_progress if person else None
    return await asyncio.wait_for(client.call_tool("call_tool", given, progress_callback=progress), SECONDS)


async def start(client: Client, tool: str) -> None:
    """Start what a tool of the server starts and stops for all its clients."""
    for _ in range(2):
        if "Started" in text_of(await call(client, tool)):
            return


def text_of(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("over", OVER)
async def test_questions_progress_and_logs_of_a_server_arrive(place: Place, over: str, mode: str) -> None:
    person = Person()
    async with client_of(place, over, mode, person) as client:
        assert "Ada" in text_of(await call(client, "trigger-elicitation-request"))
        assert "Ada thinks" in text_of(await call(client, "trigger-sampling-request", prompt="Hello"))
        assert "file:///work-of-ada" in text_of(await call(client, "get-roots-list"))
        await call(client, "trigger-long-running-operation", person, duration=0.5, steps=2)
        if mode == "legacy":
            await client.session.set_logging_level("debug")
            await start(client, "toggle-simulated-logging")
            assert any(name.startswith("everything") for name in person.logs)
    # The server asks for roots once, and remembers them.
    assert {asked.partition(":")[0] for asked in person.asked} - {"roots"} == {"everything asks", "sampling"}
    assert person.progress == [(1, 2), (2, 2)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("over", OVER)
async def test_prompts_resources_and_completion_arrive(place: Place, over: str, mode: str) -> None:
    async with client_of(place, over, mode, Person()) as client:
        prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
        assert "everything__args-prompt" in prompts
        for name in ("everything__args-prompt", "args-prompt"):
            assert "Paris" in str((await client.get_prompt(name, {"city": "Paris"})).messages)
        assert DOCUMENT in [resource.uri for resource in (await client.list_resources()).resources]
        assert "Architecture" in str((await client.read_resource(DOCUMENT)).contents)
        templates = (await client.list_resource_templates()).resource_templates
        assert "demo://resource/dynamic/text/{resourceId}" in [template.uri_template for template in templates]
        assert "Resource 7" in str((await client.read_resource("demo://resource/dynamic/text/7")).contents)
        ref = PromptReference(type="ref/prompt", name="everything__completable-prompt")
        completed = await client.session.complete(ref, {"name": "department", "value": "E"})
        assert completed.completion.values == ["Engineering"]


@pytest.mark.parametrize("over", OVER)
async def test_a_client_that_knows_only_tools_finds_and_gets_them(place: Place, over: str) -> None:
    async with client_of(place, over, "legacy", None) as client:
        query = {"query": "prompt with arguments for a city", "kind": "prompt", "threshold": 0}
        found = await client.call_tool("search_tools", query)
        hits = {hit["tool"]: hit["use"] for hit in (found.structured_content or {})["results"]}
        assert hits["everything__args-prompt"] == "get_prompt everything__args-prompt"
        got = await client.call_tool("get_prompt", {"prompt": "args-prompt", "arguments": {"city": "Rome"}})
        assert "Rome" in text_of(got)
        query = {"query": "architecture of the server", "kind": "resource", "threshold": 0}
        found = await client.call_tool("search_tools", query)
        assert f"read_resource {DOCUMENT}" in text_of(found)
        assert "Architecture" in text_of(await client.call_tool("read_resource", {"uri": DOCUMENT}))


@pytest.mark.parametrize("over", OVER)
async def test_an_older_client_is_told_of_a_resource_that_it_subscribed_to(place: Place, over: str) -> None:
    person = Person()
    async with client_of(place, over, "legacy", person) as client:
        await client.session.subscribe_resource(CHANGING)
        await start(client, "toggle-subscriber-updates")
        async with asyncio.timeout(SECONDS):
            while await person.told.get() != "ResourceUpdatedNotification":
                pass


@pytest.mark.parametrize("over", OVER)
async def test_a_client_on_a_stream_is_told_of_a_resource(place: Place, over: str) -> None:
    async with (
        client_of(place, over, "2026-07-28", Person()) as client,
        client.listen(resource_subscriptions=[CHANGING]) as events,
    ):
        await start(client, "toggle-subscriber-updates")
        event: Any = await asyncio.wait_for(anext(events), SECONDS)
        assert event.uri == CHANGING


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("over", OVER)
async def test_a_client_that_cannot_be_asked_gets_a_clear_error(place: Place, over: str, mode: str) -> None:
    async with client_of(place, over, mode, None) as client:
        result = await call(client, "trigger-elicitation-request")
    assert result.is_error
    assert "cannot ask its user" in text_of(result)


async def test_two_clients_at_once_are_each_asked_their_own(tmp_path: Path) -> None:
    """Over HTTP a server's question comes on the stream of its request, so that it is always clear whose it is."""
    people = [Person("Ada"), Person("Grace"), Person("Hedy"), Person("Joan")]
    places = [(over, mode) for over in OVER for mode in MODES]
    with reserved_port() as port, everything_over_http(port):
        async with place_with(tmp_path, {"url": f"http://127.0.0.1:{port}/mcp"}) as place:

            async def work(person: Person, over: str, mode: str) -> list[str]:
                async with client_of(place, over, mode, person) as client:
                    return [text_of(await call(client, "trigger-elicitation-request")) for _ in range(3)]

            done = await asyncio.gather(*map(work, people, *zip(*places, strict=True)))
    for person, results in zip(people, done, strict=True):
        assert all(person.name in result for result in results), results
        assert not any(other.name in result for other in people if other is not person for result in results)
        assert len(person.asked) == 3


async def test_a_question_of_a_shared_process_reaches_its_client_or_nobody(place: Place) -> None:
    people = [Person("Ada"), Person("Grace")]

    async def work(person: Person, over: str) -> list[str]:
        async with client_of(place, over, "legacy", person) as client:
            return [text_of(await call(client, "trigger-elicitation-request")) for _ in range(3)]

    done = await asyncio.gather(work(people[0], "stdio"), work(people[1], "stdio"))
    for person, other, results in zip(people, people[::-1], done, strict=True):
        assert not any(other.name in result for result in results)
        answered = [result for result in results if person.name in result]
        assert len(answered) == len(person.asked)
        assert all("not clear which" in result for result in results if result not in answered)
