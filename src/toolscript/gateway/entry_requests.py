"""Requests of clients for prompts, resources and ends of arguments: to the server that has them, unless held."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress

from toolscript.core.errors import InvalidRequest, NotFound, ToolscriptError
from toolscript.core.items import Item, ItemKind, JsonObject, tool_id
from toolscript.core.mcp_client.model import ToolServers
from toolscript.gateway.entries import Entries, Named, normal_uri, own_name, with_server, with_uri, without_server
from toolscript.gateway.indexing import Indexing
from toolscript.gateway.model import (
    COMPLETE,
    GET_PROMPT,
    PROMPTS,
    READ_RESOURCE,
    SUBSCRIBE,
    TEMPLATES,
    Change,
    EntryPage,
)
from toolscript.gateway.search import LocalSearch

MAX_NEAREST = 3
# How long a request waits for the first server of a gateway that has just started.
LISTED_SECONDS = 10.0


class EntryRequests:
    """`wait_for_start` waits until a server that is starting has started."""

    def __init__(
        self,
        servers: ToolServers,
        search: LocalSearch,
        indexing: Indexing,
        wait_for_start: Callable[[str], Awaitable[None]],
    ) -> None:
        self._servers = servers
        self._search = search
        self._indexing = indexing
        self._wait_for_start = wait_for_start
        self._of: tuple[Item, ...] | None = None
        self._entries = Entries(())

    @property
    def entries(self) -> Entries:
        """What the index has, which has nothing that is held."""
        items = self._search.index.items
        if items is not self._of:
            self._of, self._entries = items, Entries(items)
        return self._entries

    async def page(self, kind: str, cursor: str, limit: int) -> EntryPage:
        await self._listed()
        return self.entries.page(kind, cursor, limit)

    def server_of(self, method: str, params: JsonObject) -> str:
        uri = str(params.get("uri", ""))
        named = (
            self.entries.prompt(str(params.get("name", "")))
            if method == GET_PROMPT
            else self.entries.resource(uri) or next(iter(self.entries.templates_of(uri)), None)
        )
        return named.item.server if named else without_server(uri)[0]

    async def send(self, method: str, params: JsonObject) -> JsonObject:
        if method == GET_PROMPT:
            return await self._get_prompt(params)
        if method == READ_RESOURCE:
            return await self._read_resource(params)
        if method == COMPLETE:
            return await self._complete(params)
        if method == SUBSCRIBE:
            await self._place_of(str(params.get("uri", "")))
            return {}
        raise InvalidRequest(f"{method[:100]!r} is not passed on to servers")

    async def watch(self, uris: Collection[str], tell: Callable[[Change], None]) -> None:
        async with asyncio.TaskGroup() as tasks:
            for uri in uris:
                tasks.create_task(self._watch_resource(uri, tell))
            await self._watch_lists(tell)

    async def _watch_resource(self, uri: str, tell: Callable[[Change], None]) -> None:
        revision = -1
        while True:
            with suppress(ToolscriptError):
                server, own_uri = await self._place_of(uri)
                await self._servers.watch(server, own_uri, lambda: tell(Change(uri=uri)))
                return
            # Until a server lists it, or is there again.
            revision = await self._indexing.indexed(revision)

    async def _watch_lists(self, tell: Callable[[Change], None]) -> None:
        marks, revision = await asyncio.to_thread(self._marks_of, self.entries), -1
        while True:
            revision = await self._indexing.indexed(revision)
            now = await asyncio.to_thread(self._marks_of, self.entries)
            for changed in (name for name in now if now[name] != marks[name]):
                tell(Change(changed))
            marks = now

    @staticmethod
    def _marks_of(entries: Entries) -> Mapping[str, str]:
        return entries.marks

    async def _get_prompt(self, params: JsonObject) -> JsonObject:
        named = await self._prompt(str(params.get("name", "")))
        own = {**params, "name": named.own_name}
        return await self._servers.request(
            named.item.server, GET_PROMPT, own, lambda: self._require_approved(named.item)
        )

    async def _read_resource(self, params: JsonObject) -> JsonObject:
        uri = str(params.get("uri", ""))
        server, own_uri = await self._place_of(uri)
        own = {**params, "uri": own_uri}
        # A server that has woken may have changed what it offers.
        answer = await self._servers.request(server, READ_RESOURCE, own, lambda: self._place_of(uri))
        return answer if own_uri == uri else with_uri(answer, own_uri, uri)

    async def _complete(self, params: JsonObject) -> JsonObject:
        ref = params.get("ref")
        if not isinstance(ref, Mapping):
            raise InvalidRequest("ref must be an object", details={"field": "ref"})
        if ref.get("type") == "ref/prompt":
            named = await self._prompt(str(ref.get("name", "")))
            own = {**ref, "name": named.own_name}
        else:
            uri = str(ref.get("uri", ""))
            found = self.entries.template(uri)
            if found is None:
                raise NotFound(f"there is no resource template {uri[:200]!r}")
            named, own = found, {**ref, "uri": found.own_name}
            await self._require_approved(named.item)
        return await self._servers.request(
            named.item.server, COMPLETE, {**params, "ref": own}, lambda: self._require_approved(named.item)
        )

    async def _prompt(self, name: str) -> Named:
        await self._listed()
        named = self.entries.prompt(name)
        if named is None:
            raise self._why_no_prompt(name)
        await self._require_approved(named.item)
        return named

    async def _place_of(self, uri: str) -> tuple[str, str]:
        """Return the server of a resource, and the URI that it has there."""
        await self._listed()
        named = self.entries.resource(uri)
        if named is not None:
            await self._require_approved(named.item)
            return named.item.server, named.own_name
        # What several servers list is no matter of templates.
        candidates = [] if self.entries.servers_of(uri) else self.entries.templates_of(uri)
        own_uri = without_server(uri)[1]
        templates = [template for template in candidates if _matches(template.own_name, own_uri)]
        servers = {template.item.server for template in templates}
        if len(servers) == 1:
            [server] = servers
            for template in templates:
                await self._require_approved(template.item)
        else:
            server = self._server_of_unlisted(uri, servers)
        _, own_uri = without_server(uri)
        self._require_not_held(server, own_uri)
        return server, own_uri

    def _server_of_unlisted(self, uri: str, candidates: set[str]) -> str:
        """Return the server of a URI that is in no list, such as one that a tool's result names."""
        with_resources = self.entries.servers_with_resources()
        named, own_uri = without_server(uri)
        listed = self.entries.servers_of(own_uri)
        candidates = {named} & with_resources if named else listed or candidates or with_resources
        if len(candidates) == 1:
            return next(iter(candidates))
        self._require_no_held(uri)
        hint = f"read it as {with_server('SERVER', own_uri[:200])}, with one of: {', '.join(sorted(candidates))}"
        what = "several servers list" if listed else "no server lists"
        raise NotFound(f"{what} the resource {uri[:200]!r}", hint=hint if candidates else "")

    def _require_no_held(self, uri: str) -> None:
        """Refuse a URI, in any spelling, that is one of a held resource or template of any server."""
        store, address = self._indexing.approvals, normal_uri(uri)
        for offer in self._indexing.offers() if store else ():
            for item in (item for item in offer.items if item.kind is ItemKind.RESOURCE):
                kind, own = own_name(item)
                if _matches(own, address) if kind == TEMPLATES else normal_uri(own) == address:
                    assert store is not None  # noqa: S101
                    store.require(item)

    def _require_not_held(self, server: str, uri: str) -> None:
        """Refuse an unlisted URI where the server has resources that are held: it could be one of them."""
        store = self._indexing.approvals
        held = [
            review
            for review in self._indexing.reviews()
            if review.held and review.server == server and review.kind == ItemKind.RESOURCE
        ]
        if store is None or not held:
            return
        for offer in self._indexing.offers():
            for item in offer.items if offer.server == server else ():
                if item.kind is ItemKind.RESOURCE:
                    store.require(item)
        raise NotFound(f"{server} does not list the resource {uri[:200]!r}, and has some that are held")

    async def _require_approved(self, item: Item) -> None:
        await self._wait_for_start(item.server)
        if self._indexing.approvals is not None:
            await asyncio.to_thread(self._indexing.approvals.require, self._current(item))

    def _current(self, item: Item) -> Item:
        """Return the item as its server offers it now; the index follows a little later."""
        offers = (offer for offer in self._servers.offers() if offer.server == item.server)
        same = (
            other for offer in offers for other in offer.items if (other.kind, other.key) == (item.kind, item.key)
        )
        return next(same, item)

    async def _listed(self) -> None:
        """Wait for the first listing where nothing is listed yet."""
        if not self._search.index.items:
            await self._indexing.until_ready(LISTED_SECONDS)

    def _why_no_prompt(self, name: str) -> NotFound:
        store = self._indexing.approvals
        for offer in self._indexing.offers() if store else ():
            for item in offer.items:
                if item.kind is ItemKind.PROMPT and name in (item.name, tool_id(item.server, item.name)):
                    assert store is not None  # noqa: S101
                    store.require(item)
        from rapidfuzz import process

        names = self.entries.names(PROMPTS)
        nearest = [match[0] for match in process.extract(name, names, limit=MAX_NEAREST)]
        return NotFound(
            f"there is no prompt {name[:200]!r}",
            hint=f"did you mean {', '.join(nearest)}?" if nearest else "no server offers a prompt",
            details={"nearest": nearest},
        )


def _matches(uri_template: str, uri: str) -> bool:
    # The parser comes with the SDK, which takes long to import.
    from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate

    try:
        return UriTemplate.parse(uri_template).match(uri) is not None
    except InvalidUriTemplate:
        return False
