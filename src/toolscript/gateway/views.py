"""The workspaces that a gateway serves beside the user's own: each has its own servers, over shared ones."""

import asyncio
import json
import logging
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from toolscript.core.errors import ERROR_TABLE, InvalidRequest, NotFound, Overloaded, envelope_of
from toolscript.gateway.workspace import PREFIX, UNKNOWN_WORKSPACE, WORKSPACES_PATH, Workspace

MAX_OPEN = 32
# How long a workspace stays open without a request; its clients open it again.
UNUSED_SECONDS = 3_600.0
SWEEP_SECONDS = 60.0

OpenView = Callable[[Workspace], AbstractAsyncContextManager[ASGIApp]]

logger = logging.getLogger(__name__)


class View:
    """One open workspace. One task opens and closes it, as the task groups in it require."""

    def __init__(self, workspace: Workspace, open_view: OpenView) -> None:
        self.workspace = workspace
        self.requests = 0
        self.used_at = time.monotonic()
        self._closing = asyncio.Event()
        self._app: asyncio.Future[ASGIApp] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._live(open_view), name=f"workspace {workspace.id}")

    async def app(self) -> ASGIApp:
        """Return the app once it is open; raise what kept it from opening."""
        return await asyncio.shield(self._app)

    @property
    def is_ended(self) -> bool:
        return self._task.done()

    async def close(self) -> None:
        self._closing.set()
        await asyncio.wait([self._task])

    async def _live(self, open_view: OpenView) -> None:
        try:
            async with open_view(self.workspace) as app:
                self._app.set_result(app)
                await self._closing.wait()
        except Exception as error:
            if self._app.done():
                logger.exception("a workspace has ended")
                return
            self._app.set_exception(error)
            # Whoever opens it raises the error; without anyone it is not worth a second report.
            self._app.exception()


class Views:
    """Open workspaces by their ids. `default` is the id of the one that needs no prefix."""

    def __init__(self, open_view: OpenView) -> None:
        self._open_view = open_view
        self._views: dict[str, View] = {}

    async def open(self, workspace: Workspace) -> None:
        view = self._views.get(workspace.id)
        if view is None or view.is_ended:
            await self._make_room()
            view = self._views[workspace.id] = View(workspace, self._open_view)
        await view.app()

    def get(self, workspace_id: str) -> View | None:
        view = self._views.get(workspace_id)
        return None if view is None or view.is_ended else view

    async def sweep(self) -> None:
        """Close workspaces that nobody uses any more, as long as the gateway runs."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            oldest = time.monotonic() - UNUSED_SECONDS
            await self._close(
                [view for view in self._views.values() if not view.requests and view.used_at < oldest]
            )

    async def close(self) -> None:
        await self._close([*self._views.values()])

    async def _make_room(self) -> None:
        if len(self._views) < MAX_OPEN:
            return
        free = sorted((view for view in self._views.values() if not view.requests), key=lambda view: view.used_at)
        if not free:
            raise Overloaded(f"{MAX_OPEN} workspaces are in use at once", hint="try again in a moment")
        await self._close(free[:1])

    async def _close(self, views: list[View]) -> None:
        for view in views:
            del self._views[view.workspace.id]
        await asyncio.gather(*(view.close() for view in views))


class WorkspaceRouter:
    """Passes requests below the prefix of a workspace to its routes."""

    def __init__(self, app: ASGIApp, views: Views) -> None:
        self._app = app
        self._views = views

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(PREFIX):
            await self._app(scope, receive, send)
            return
        workspace_id, _, rest = scope["path"].removeprefix(PREFIX).partition("/")
        view = self._views.get(workspace_id)
        if view is None:
            await _unknown(workspace_id)(scope, receive, send)
            return
        raw = scope.get("raw_path", b"").removeprefix(f"{PREFIX}{workspace_id}".encode())
        view.requests += 1
        try:
            app = await view.app()
            await app({**scope, "path": f"/{rest}", "raw_path": raw or b"/"}, receive, send)
        finally:
            view.requests -= 1
            view.used_at = time.monotonic()


def _unknown(workspace_id: str) -> JSONResponse:
    error = NotFound(
        "this workspace is not open here",
        hint="`toolscript gateway env` in its folder opens it and prints its address",
        details={UNKNOWN_WORKSPACE: workspace_id[:64]},
    )
    return JSONResponse(envelope_of(error), ERROR_TABLE[NotFound].http_status)


def workspace_route(views: Views) -> Route:
    """Return the route by which a client names its config files. What they start is decided by trust, here too."""

    async def register(request: Request) -> Response:
        try:
            data = json.loads(await request.body())
        except (ValueError, RecursionError):
            data = None
        if not isinstance(data, dict):
            raise InvalidRequest("the body must be a JSON object", hint="name config files: `files`")
        workspace = Workspace.from_json(data)
        await views.open(workspace)
        return JSONResponse({"id": workspace.id, "path": f"{PREFIX}{workspace.id}"})

    return Route(WORKSPACES_PATH, register, methods=["POST"])
