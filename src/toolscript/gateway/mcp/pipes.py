"""What `toolscript mcp` says beside the messages of its client: how the client's entry sets it up."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, NamedTuple

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from toolscript.core.mcp.endpoint import Context
from toolscript.core.retrieval.query import SearchType
from toolscript.gateway.first_answers import PIPE_HEADER

MAX_NOTE = 4_000


class Pipe(NamedTuple):
    """`split`: destructive tools apart; `note`: what its searches say of servers that are left out.

    Over HTTP some arguments are repeated in headers; `is_pipe` has a client that knows nothing of them.
    """

    is_pipe: bool = False
    split: bool = False
    search_type: SearchType | None = None
    note: str = ""


def pipe_in(headers: Mapping[str, str]) -> Pipe | None:
    """Return what a pipe says; None for a client without one."""
    said: Any = None
    with suppress(ValueError, RecursionError):
        said = json.loads(headers.get(PIPE_HEADER, "null"))
    if not isinstance(said, dict):
        return None
    search_type = str(said.get("search_type"))
    return Pipe(
        True,
        said.get("split") is True,
        SearchType(search_type) if search_type in [*SearchType] else None,
        str(said.get("note", ""))[:MAX_NOTE],
    )


def pipe_of(context: Context) -> Pipe:
    headers = getattr(context.request, "headers", None)
    return (pipe_in(headers) if headers is not None else None) or Pipe()


_pipe: ContextVar[Pipe] = ContextVar("pipe", default=Pipe())  # noqa: B039 - a tuple


def current_pipe() -> Pipe:
    """Return what the pipe says whose request is being answered."""
    return _pipe.get()


@contextmanager
def piped_by(pipe: Pipe) -> Iterator[None]:
    token = _pipe.set(pipe)
    try:
        yield
    finally:
        _pipe.reset(token)


class Piped:
    """ASGI app for a route: what is done for a pipe has what it says in its context."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with piped_by(pipe_in(Headers(scope=scope)) or Pipe()):
            await self._app(scope, receive, send)


class BySplit:
    """ASGI app for a route: of two apps, the one whose calls are split as the client's entry wants them."""

    def __init__(self, app: ASGIApp, split_app: ASGIApp, *, split: bool) -> None:
        self._apps = {False: app, True: split_app}
        self._usual = split

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        pipe = pipe_in(Headers(scope=scope))
        await self._apps[self._usual if pipe is None else pipe.split](scope, receive, send)
