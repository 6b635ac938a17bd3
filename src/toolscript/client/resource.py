"""What the resources of both clients are made of: operations and lists, written once for threads and asyncio.

A method of a resource returns `Steps` or a `Listing`. The decorators `operation` and `listing` turn it into one
that returns the result in a `Client`, and an awaitable or an asynchronous iterator of it in an `AsyncClient`.
"""

import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from functools import update_wrapper
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Protocol, Self, TypeVar, cast, overload
from urllib.parse import quote, urlencode

from toolscript.client.exchange import Conversation, Request, Steps
from toolscript.client.records import Record, list_from_json
from toolscript.core.text import readable

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R", bound=Record)

PREFIX = "/api/v1"

Json = dict[str, Any]


class Sync:
    """Marks the resources of a `Client`."""


class Async:
    """Marks the resources of an `AsyncClient`."""


M_co = TypeVar("M_co", bound=Sync | Async, covariant=True)


class Runs(Protocol):
    """A sender: it runs steps, and returns their result, or an awaitable of it if it `is_async`."""

    @property
    def is_async(self) -> bool: ...
    @property
    def run(self) -> Callable[[Steps[Any]], Any]: ...


class Resource(Generic[M_co]):
    """A part of the API, such as tools; `M_co` says whether its methods return results or awaitables."""

    def __init__(self, conversation: Conversation, sender: Runs) -> None:
        self._conversation = conversation
        self._sender = sender

    def _ask(
        self,
        method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"],
        path: str,
        answer: type[R],
        *,
        body: Mapping[str, object] | None = None,
        query: Mapping[str, object] | None = None,
        idempotent: bool = True,
        timeout: float | None = None,
        with_null: bool = False,
    ) -> Steps[R]:
        """Return the steps of a request. What is None is not sent, except in the body of one `with_null`."""
        content = body if body is None or with_null else given(body)
        request = Request(
            method,
            path + query_of(query or {}),
            None if content is None else json.dumps(content).encode(),
            idempotent=idempotent,
            timeout=timeout,
        )
        return self._conversation.ask(request, lambda data: answer.from_json(json.loads(data)))

    def _listing(
        self, path: str, entry: type[R], page_size: int | None, cursor: str, **query: object
    ) -> "Listing[R]":
        return Listing(self._conversation, path, entry, {"limit": page_size, **query}, cursor)


def given(values: Mapping[str, object]) -> Json:
    """Return what is not None, with valid text: a command line can hold invalid Unicode."""
    return {name: _readable(value) for name, value in values.items() if value is not None}


def _readable(value: object) -> object:
    if isinstance(value, str):
        return readable(value)
    return [_readable(entry) for entry in value] if isinstance(value, list | tuple) else value


def query_of(values: Mapping[str, object]) -> str:
    """Return the query string of these parameters; a list repeats its name, None is left out."""
    pairs = [
        (name, str(entry).lower() if isinstance(entry, bool) else entry)
        for name, value in given(values).items()
        for entry in (value if isinstance(value, list) else [value])
    ]
    return f"?{urlencode(pairs)}" if pairs else ""


def step_of(name: object) -> str:
    """Return a name as exactly one step of a path, also through proxies that normalise `.` and `..`."""
    step = quote(readable(str(name)), safe="")
    return step.replace(".", "%2E") if step in (".", "..") else step


class Page(Generic[T]):
    """One page of a list. `next_cursor` is the `cursor` of the next page, None on the last one."""

    def __init__(self, results: list[T], next_cursor: str | None) -> None:
        self.results = results
        self.next_cursor = next_cursor


class Listing(Generic[T]):
    """The requests of a list."""

    def __init__(
        self, conversation: Conversation, path: str, entry: type[T], query: Mapping[str, object], cursor: str
    ) -> None:
        self._conversation = conversation
        self._path = path
        self._entry = entry
        self._query = query
        self.cursor = cursor

    def page(self, cursor: str) -> Steps[Page[T]]:
        request = Request("GET", self._path + query_of({**self._query, "cursor": cursor or None}))
        return self._conversation.ask(request, self._read)

    def following(self, page: Page[T], cursor: str) -> str:
        """Return the cursor of the next page; raise for a server that returns the same one again and again."""
        if page.next_cursor is not None and page.next_cursor == cursor:
            raise self._conversation.unexpected()
        return page.next_cursor or ""

    def _read(self, body: bytes) -> Page[T]:
        data = json.loads(body)
        following = data["next_cursor"]
        return Page(list_from_json(self._entry, data["results"]), None if following is None else str(following))


class Pages(Generic[T]):
    """The entries of a list, over all of its pages; each iteration asks again."""

    def __init__(self, listing: Listing[T], sender: Runs) -> None:
        self._listing = listing
        self._sender = sender

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            yield from page.results

    def pages(self) -> Iterator[Page[T]]:
        """Iterate over the pages instead of their entries."""
        cursor = self._listing.cursor
        while True:
            page = cast("Page[T]", self._sender.run(self._listing.page(cursor)))
            yield page
            cursor = self._listing.following(page, cursor)
            if not cursor:
                return


class AsyncPages(Generic[T]):
    """The entries of a list, over all of its pages; each iteration asks again."""

    def __init__(self, listing: Listing[T], sender: Runs) -> None:
        self._listing = listing
        self._sender = sender

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for entry in page.results:
                yield entry

    async def pages(self) -> AsyncIterator[Page[T]]:
        """Iterate over the pages instead of their entries."""
        cursor = self._listing.cursor
        while True:
            page = cast("Page[T]", await self._sender.run(self._listing.page(cursor)))
            yield page
            cursor = self._listing.following(page, cursor)
            if not cursor:
                return


class operation(Generic[P, T]):  # noqa: N801 - a decorator, like `property`
    """A method that sends a request, or several, and returns one result."""

    def __init__(self, build: Callable[Concatenate[Any, P], Steps[T]]) -> None:
        self._build = build
        update_wrapper(cast("Any", self), build)

    @overload
    def __get__(self, resource: None, owner: type[Any]) -> Self: ...
    @overload
    def __get__(self, resource: Resource[Sync], owner: type[Any]) -> Callable[P, T]: ...
    @overload
    def __get__(self, resource: Resource[Async], owner: type[Any]) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, resource: Resource[Any] | None, owner: type[Any]) -> Any:
        if resource is None:
            return self
        found = resource

        def run(*args: P.args, **kwargs: P.kwargs) -> Any:
            return found._sender.run(self._build(found, *args, **kwargs))  # noqa: SLF001

        return update_wrapper(run, self._build)


class listing(Generic[P, T]):  # noqa: N801 - a decorator, like `property`
    """A method that returns the entries of a list, which are read page by page."""

    def __init__(self, build: Callable[Concatenate[Any, P], Listing[T]]) -> None:
        self._build = build
        update_wrapper(cast("Any", self), build)

    @overload
    def __get__(self, resource: None, owner: type[Any]) -> Self: ...
    @overload
    def __get__(self, resource: Resource[Sync], owner: type[Any]) -> Callable[P, Pages[T]]: ...
    @overload
    def __get__(self, resource: Resource[Async], owner: type[Any]) -> Callable[P, AsyncPages[T]]: ...
    def __get__(self, resource: Resource[Any] | None, owner: type[Any]) -> Any:
        if resource is None:
            return self
        found, pages = resource, AsyncPages if resource._sender.is_async else Pages  # noqa: SLF001

        def run(*args: P.args, **kwargs: P.kwargs) -> Any:
            return pages(self._build(found, *args, **kwargs), found._sender)  # noqa: SLF001

        return update_wrapper(run, self._build)


def values_of(value: str | Sequence[str] | None) -> list[str] | None:
    """Return one value or several as a list."""
    if value is None or isinstance(value, str):
        return None if value is None else [value]
    return list(value)
