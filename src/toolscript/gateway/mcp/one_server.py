"""`/mcp/{server}`: what `/mcp/all` is for all servers, for one of them, under its own names and URIs."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack

import anyio
from anyio.abc import TaskGroup, TaskStatus
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from toolscript.core.errors import ERROR_TABLE, NotFound, envelope_of
from toolscript.core.items import SEPARATOR, Item, JsonObject, tool_id
from toolscript.core.mcp.endpoint import ToolServer
from toolscript.core.mcp.sessions import mcp_asgi_with_sessions
from toolscript.core.mcp_client.model import CallResult, ServerState
from toolscript.gateway.approvals import Review
from toolscript.gateway.entries import Entries, with_server, with_uri
from toolscript.gateway.listed_tools import ListedTools, ToolPage
from toolscript.gateway.model import COMPLETE, GET_PROMPT, PAGE, Change, DirectGateway, EntryPage


class OneServer:
    """Implements the port `DirectGateway` for one server of a gateway, which checks and logs what it is asked.

    `until_listed` waits for the first listing right after the start. `states` are those of the servers: a call of
    one that does not answer, whose tools nobody knows, is refused by the gateway, which says what to do.
    """

    def __init__(
        self,
        gateway: DirectGateway,
        server: str,
        until_listed: Callable[[], Awaitable[None]] | None = None,
        states: Callable[[], Awaitable[Sequence[ServerState]]] | None = None,
    ) -> None:
        self._gateway = gateway
        self._server = server
        self._until_listed = until_listed
        self._states = states

    async def items(self, wanted: tuple[str, ...] = ()) -> Sequence[Item]:
        items = await self._gateway.items(wanted or (self._server,))
        return [item for item in items if item.server == self._server]

    async def call(self, tool: str, arguments: JsonObject) -> CallResult:
        return await self._gateway.call(tool, arguments)

    async def listed_tools(self, after: str = "") -> ToolPage:
        if self._until_listed is not None:
            await self._until_listed()
        return (await self._tools()).page(after)

    async def tool_named(self, name: str) -> str:
        item = (await self._tools()).find(name)
        if item is not None:
            return tool_id(item.server, item.name)
        # An id with one more separator would be that of another server.
        is_sound = bool(name) and SEPARATOR not in self._server
        return tool_id(self._server, name) if is_sound and await self._is_down() else ""

    async def _is_down(self) -> bool:
        states = await self._states() if self._states is not None else ()
        return any(state.name == self._server and not state.answers for state in states)

    async def _tools(self) -> ListedTools:
        return ListedTools(await self.items(), own_names=True)

    async def _entries(self) -> Entries:
        return Entries(await self.items(), own_names=True)

    async def entries(self, kind: str, cursor: str = "", limit: int = PAGE) -> EntryPage:
        return (await self._entries()).page(kind, cursor, limit)

    async def request(self, method: str, params: JsonObject) -> JsonObject:
        ref = params.get("ref")
        if method == COMPLETE and isinstance(ref, dict):
            return await self._gateway.request(method, {**params, "ref": self._joint(ref)})
        joint = self._joint(params)
        answer = await self._gateway.request(method, joint)
        return answer if method == GET_PROMPT else with_uri(answer, str(joint["uri"]), str(params.get("uri", "")))

    def _joint(self, params: JsonObject) -> JsonObject:
        """Return a prompt's name or a URI as all servers' prompts and resources are addressed."""
        if "uri" in params:
            return {**params, "uri": with_server(self._server, str(params["uri"]))}
        return {**params, "name": tool_id(self._server, str(params.get("name", "")))}

    async def watch(self, uris: Collection[str], tell: Callable[[Change], None]) -> None:
        own = {with_server(self._server, uri): uri for uri in uris}
        changed = asyncio.Event()

        def told(change: Change) -> None:
            if change.uri:
                tell(Change(uri=own[change.uri]))
            else:
                changed.set()

        marks = (await self._entries()).marks
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._gateway.watch(own, told))
            while True:
                await changed.wait()
                changed.clear()
                now = (await self._entries()).marks
                for name in (name for name in now if now[name] != marks[name]):
                    tell(Change(name))
                marks = now

    async def reviews(self) -> Sequence[Review]:
        return [review for review in await self._gateway.reviews() if review.server == self._server]


class ServerApps:
    """ASGI app for the route: each server's own app, opened at its first request and closed at the end."""

    def __init__(self, has: Callable[[str], bool], create: Callable[[str], ToolServer]) -> None:
        self._has = has
        self._create = create
        self._apps: dict[str, ASGIApp] = {}
        self._opening = asyncio.Lock()
        self._tasks: TaskGroup = anyio.create_task_group()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "ServerApps":
        await self._stack.enter_async_context(self._tasks)
        self._stack.callback(self._tasks.cancel_scope.cancel)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        server = str(scope["path_params"]["server"])
        if not self._has(server):
            error = NotFound(f"there is no server {server[:100]!r}", hint="`toolscript list-servers` lists them")
            await JSONResponse(envelope_of(error), ERROR_TABLE[NotFound].http_status)(scope, receive, send)
            return
        async with self._opening:
            if server not in self._apps:
                # In a task of its own: task groups end in the task in which they began.
                self._apps[server] = await self._tasks.start(self._serve, server)
        await self._apps[server](scope, receive, send)

    async def _serve(self, server: str, *, task_status: TaskStatus[ASGIApp]) -> None:
        app, living = mcp_asgi_with_sessions(self._create(server))
        async with living:
            task_status.started(app)
            await anyio.sleep_forever()
