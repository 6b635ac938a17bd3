"""Reads all that a server offers, page by page, within bounds."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

import anyio

from toolscript.adapters.mcp_servers.entries import Found
from toolscript.errors import ServerRejected
from toolscript.model.items import Item, JsonObject
from toolscript.model.servers import ServerSpec

MAX_ITEMS = 20_000
MAX_PAGES = 1_000
# Every item carries it, so that a long text would be kept thousands of times.
MAX_ABOUT = 1_000

Ask = Callable[[str, JsonObject], Awaitable[JsonObject]]


@dataclass(frozen=True)
class Listing:
    """One list of a server: how it is asked for, and where in the answer it stands."""

    name: str
    method: str
    field: str


METHOD_NOT_FOUND = -32601
TOOLS = Listing("tool", "tools/list", "tools")
PROMPTS = Listing("prompt", "prompts/list", "prompts")
RESOURCES = Listing("resource", "resources/list", "resources")
TEMPLATES = Listing("resource template", "resources/templates/list", "resourceTemplates")


async def list_all(
    ask: Ask, spec: ServerSpec, about: str, wanted: Sequence[Listing], check: Callable[[Item], str | None]
) -> Found:
    """Without its tools a server is of no use; what is wrong with its other lists is noted and no more."""
    found = Found(spec, about[:MAX_ABOUT])
    if TOOLS in wanted:
        await _take(ask, TOOLS, found, check)
    try:
        with anyio.fail_after(spec.start_seconds / 3):
            for listing in wanted:
                if listing is not TOOLS:
                    await _take_if_given(ask, listing, found, check)
    except TimeoutError:
        found.refuse("prompts and resources", "the server did not list them all in time")
    return found


async def _take_if_given(ask: Ask, listing: Listing, found: Found, check: Callable[[Item], str | None]) -> None:
    try:
        await _take(ask, listing, found, check)
    except ServerRejected as error:
        # Who lacks a method has nothing to list by it.
        if error.details.get("code") != METHOD_NOT_FOUND:
            found.refuse(f"{listing.name}s", error.message)


async def _take(ask: Ask, listing: Listing, found: Found, check: Callable[[Item], str | None]) -> None:
    room = MAX_ITEMS - len(found.items)
    entries = []
    async for page in _pages(ask, listing, found):
        entries += page
        if len(entries) > room:
            found.refuse(f"{listing.name}s", f"a server's first {MAX_ITEMS} items are taken, the rest is not")
            break
    # Thousands of schemas take their time, and the other servers' messages do not wait for them.
    await asyncio.to_thread(found.add, listing.name, entries[:room], check)


async def _pages(ask: Ask, listing: Listing, found: Found) -> AsyncIterator[list[object]]:
    page, seen = await _page(ask, listing, {}), set[object]()
    for _ in range(MAX_PAGES):
        yield page.entries
        # A cursor that comes again would lead in a circle.
        if page.cursor is None or page.cursor in seen:
            return
        seen.add(page.cursor)
        try:
            page = await _page(ask, listing, {"cursor": page.cursor})
        except ServerRejected as error:
            found.refuse(f"{listing.name}s", f"page {len(seen) + 1}: {error.message}")
            return
    found.refuse(f"{listing.name}s", f"a server's first {MAX_PAGES} pages are read, the rest is not")


@dataclass(frozen=True)
class _Page:
    entries: list[object]
    cursor: str | None


async def _page(ask: Ask, listing: Listing, params: JsonObject) -> _Page:
    answer = await ask(listing.method, params)
    entries, cursor = answer.get(listing.field), answer.get("nextCursor")
    if not isinstance(entries, list):
        raise ServerRejected(f"{listing.method}: the answer has no list of {listing.field}")
    return _Page(entries, cursor if isinstance(cursor, str) and cursor else None)
