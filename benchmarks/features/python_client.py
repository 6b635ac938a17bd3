"""The Python SDK as a client: does the steps, answers what servers ask, and notes what they say."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.subscriptions import ListenNotSupportedError
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CreateMessageResult,
    ElicitResult,
    ListRootsResult,
    LoggingLevel,
    LoggingMessageNotificationParams,
    Root,
    TextContent,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, FileUrl

from benchmarks.features.steps import FIELDS, Json, Observed, Step, Target

ROOT = "file:///srv/project"
FORM = {"name": "Ada", "check": True, "integer": 5, "number": 1.5}
NOTIFIED_SECONDS = 8.0
STEP_SECONDS = 60.0
LOG_LEVEL: LoggingLevel = "debug"


class _Heard:
    """What a server said and asked since the last step began."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.progress: list[Any] = []
        self.logs: list[Any] = []
        self.asked: list[Any] = []
        self.changes: set[str] = set()
        self._changed = anyio.Event()

    def to_json(self) -> dict[str, Any]:
        found = {
            "progress": self.progress,
            "logs": self.logs,
            "asked": self.asked,
            "changes": sorted(self.changes),
        }
        return {name: value for name, value in found.items() if value}

    async def on_progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.progress.append([progress, total, message])

    async def on_log(self, params: LoggingMessageNotificationParams) -> None:
        self.logs.append(_json(params))

    async def on_message(self, message: Any) -> None:
        method = getattr(message, "method", "")
        if isinstance(method, str) and method.endswith("list_changed"):
            self.note_change(method)

    def note_change(self, method: str) -> None:
        self.changes.add(method)
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    async def until_changed(self, method: str) -> None:
        while method not in self.changes:
            await self._changed.wait()

    async def on_elicitation(self, context: Any, params: Any) -> ElicitResult:  # noqa: ARG002
        self.asked.append({"elicitation/create": _json(params)})
        return ElicitResult(action="accept", content=FORM)  # type: ignore[arg-type]

    async def on_sampling(self, context: Any, params: Any) -> CreateMessageResult:  # noqa: ARG002
        self.asked.append({"sampling/createMessage": _json(params)})
        return CreateMessageResult(
            role="assistant",
            content=TextContent(type="text", text="sampled"),
            model="a-model",
            stop_reason="endTurn",
        )

    async def on_roots(self, context: Any) -> ListRootsResult:  # noqa: ARG002
        self.asked.append({"roots/list": {}})
        return ListRootsResult(roots=[Root(uri=FileUrl(ROOT), name="project")])


async def observe(target: Target, steps: Callable[[Observed], Sequence[Step]]) -> dict[str, Json]:
    """Return what a client of this server sees. `steps` is asked again with what was seen, until it adds none."""
    heard = _Heard()
    async with _connected(target, heard) as client:
        observed: dict[str, Json] = {
            "capabilities: server": {"result": _json(client.server_capabilities)},
            "protocol": {"result": client.protocol_version},
        }
        done = 0
        while more := steps(observed)[done:]:
            for step in more:
                heard.clear()
                observed[step.id] = {**await _outcome(client, heard, step), **heard.to_json()}
            done += len(more)
        return observed


@asynccontextmanager
async def _connected(target: Target, heard: _Heard) -> AsyncIterator[Client]:
    program = [*target.command]
    server: Any = target.url or stdio_client(
        StdioServerParameters(command=program[0], args=program[1:], env={**target.env})
    )
    client = Client(
        server,
        logging_callback=heard.on_log,
        log_level=LOG_LEVEL,
        message_handler=heard.on_message,
        elicitation_callback=heard.on_elicitation,
        sampling_callback=heard.on_sampling,
        list_roots_callback=heard.on_roots,
    )
    async with client, _listening(client, heard):
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS and client.server_capabilities.logging:
            await client.set_logging_level(LOG_LEVEL)
        # Servers register what depends on a client's capabilities a moment after the handshake.
        await anyio.sleep(1.0)
        yield client


@asynccontextmanager
async def _listening(client: Client, heard: _Heard) -> AsyncIterator[None]:
    """Subscribe to changes, where the protocol has subscriptions."""

    async def note() -> None:
        kinds = {"tools_list_changed": True, "prompts_list_changed": True, "resources_list_changed": True}
        try:
            async with client.listen(**kinds) as events:  # type: ignore[arg-type]
                async for event in events:
                    kind = type(event).__name__.removesuffix("ListChanged").lower()
                    heard.note_change(f"notifications/{kind}/list_changed")
        except (ListenNotSupportedError, MCPError):
            return

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(note)
        yield
        tasks.cancel_scope.cancel()


async def _outcome(client: Client, heard: _Heard, step: Step) -> dict[str, Any]:
    with anyio.move_on_after(step.cancel_after or STEP_SECONDS):
        try:
            result = await _request(client, heard, step)
        except MCPError as error:
            return {"error": {"code": error.error.code, "message": error.error.message}}
        except Exception as error:  # noqa: BLE001 - what a client makes of an answer is a result, too
            return {"error": {"code": type(error).__name__, "message": str(error)[:300]}}
        with anyio.move_on_after(NOTIFIED_SECONDS if step.wait_for else 0):
            await heard.until_changed(step.wait_for)
        return {"result": result}
    return {"error": {"code": "cancelled" if step.cancel_after else "timeout", "message": ""}}


async def _request(client: Client, heard: _Heard, step: Step) -> Any:
    if step.method in FIELDS:
        return await _whole_list(client, step.method)
    params: dict[str, Any] = {**step.params}
    send: dict[str, Callable[..., Awaitable[Any]]] = {
        "tools/call": lambda: client.call_tool(
            params["name"], params.get("arguments"), progress_callback=heard.on_progress
        ),
        "prompts/get": lambda: client.get_prompt(params["name"], params.get("arguments")),
        "resources/read": lambda: client.read_resource(params["uri"]),
        "completion/complete": lambda: _complete(client, params),
    }
    return _json(await send[step.method]())


async def _complete(client: Client, params: dict[str, Any]) -> Any:
    from mcp_types import PromptReference, ResourceTemplateReference

    ref = params["ref"]
    named = (
        PromptReference(name=ref["name"])
        if ref["type"] == "ref/prompt"
        else ResourceTemplateReference(uri=ref["uri"])
    )
    return await client.complete(named, params["argument"], params.get("context", {}).get("arguments"))


async def _whole_list(client: Client, method: str) -> Json:
    lists = {
        "tools/list": client.list_tools,
        "prompts/list": client.list_prompts,
        "resources/list": client.list_resources,
        "resources/templates/list": client.list_resource_templates,
    }
    entries: list[Any] = []
    cursor = None
    while True:
        page = _json(await lists[method](cursor=cursor, cache_mode="bypass"))
        entries += page[FIELDS[method]]
        cursor = page.get("nextCursor")
        if not cursor:
            return {FIELDS[method]: entries}


def _json(value: BaseModel | None) -> Any:
    return None if value is None else value.model_dump(by_alias=True, mode="json", exclude_none=True)
