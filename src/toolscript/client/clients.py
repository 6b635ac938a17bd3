"""`Client` and `AsyncClient`: a service or gateway that runs elsewhere, by resource."""

from collections.abc import Callable
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self

from toolscript.client.exchange import SERVER, Conversation, Pause, Peer, Retries, address_of
from toolscript.client.http import Sender
from toolscript.client.resource import Async, M_co, Runs, Sync
from toolscript.client.settings import load_client_settings

if TYPE_CHECKING:
    from toolscript.client.resources.documents import Documents, Tenants
    from toolscript.client.resources.knowledge import Knowledge
    from toolscript.client.resources.registry import (
        Audit,
        Changes,
        Curation,
        Jobs,
        Searches,
        Skills,
        Sources,
        Suggestions,
    )
    from toolscript.client.resources.tools import Activity, Reviews, Servers, Tools


class _Resources(Generic[M_co]):
    """The resources of both clients, each imported when it is first used. A server may not have all of them."""

    _conversation: Conversation
    _sender: Runs

    @cached_property
    def tools(self) -> "Tools[M_co]":
        """Tools of a service or gateway."""
        from toolscript.client.resources.tools import Tools

        return Tools(self._conversation, self._sender)

    @cached_property
    def servers(self) -> "Servers[M_co]":
        """The MCP servers of a gateway."""
        from toolscript.client.resources.tools import Servers

        return Servers(self._conversation, self._sender)

    @cached_property
    def activity(self) -> "Activity[M_co]":
        """What was searched and called at a gateway."""
        from toolscript.client.resources.tools import Activity

        return Activity(self._conversation, self._sender)

    @cached_property
    def reviews(self) -> "Reviews[M_co]":
        """New and changed definitions of a gateway's servers."""
        from toolscript.client.resources.tools import Reviews

        return Reviews(self._conversation, self._sender)

    @cached_property
    def skills(self) -> "Skills[M_co]":
        """Skills of a service, by which it routes searches."""
        from toolscript.client.resources.registry import Skills

        return Skills(self._conversation, self._sender)

    @cached_property
    def suggestions(self) -> "Suggestions[M_co]":
        """Skills that the classifier of a service suggests."""
        from toolscript.client.resources.registry import Suggestions

        return Suggestions(self._conversation, self._sender)

    @cached_property
    def curation(self) -> "Curation[M_co]":
        """Rules of people about the tool search of a service."""
        from toolscript.client.resources.registry import Curation

        return Curation(self._conversation, self._sender)

    @cached_property
    def searches(self) -> "Searches[M_co]":
        """The log of tool searches, and what was not found."""
        from toolscript.client.resources.registry import Searches

        return Searches(self._conversation, self._sender)

    @cached_property
    def changes(self) -> "Changes[M_co]":
        """Changed definitions of the tools of a service."""
        from toolscript.client.resources.registry import Changes

        return Changes(self._conversation, self._sender)

    @cached_property
    def sources(self) -> "Sources[M_co]":
        """Where the tools of a service come from."""
        from toolscript.client.resources.registry import Sources

        return Sources(self._conversation, self._sender)

    @cached_property
    def jobs(self) -> "Jobs[M_co]":
        """Imports and syncs of a service."""
        from toolscript.client.resources.registry import Jobs

        return Jobs(self._conversation, self._sender)

    @cached_property
    def audit(self) -> "Audit[M_co]":
        """Who decided what in a service."""
        from toolscript.client.resources.registry import Audit

        return Audit(self._conversation, self._sender)

    @cached_property
    def documents(self) -> "Documents[M_co]":
        """Documents of the token's tenant in a service."""
        from toolscript.client.resources.documents import Documents

        return Documents(self._conversation, self._sender)

    @cached_property
    def tenants(self) -> "Tenants[M_co]":
        """Tenants of a service."""
        from toolscript.client.resources.documents import Tenants

        return Tenants(self._conversation, self._sender)

    @cached_property
    def knowledge(self) -> "Knowledge[M_co]":
        """The library of a service."""
        from toolscript.client.resources.knowledge import Knowledge

        return Knowledge(self._conversation, self._sender)


class Client(_Resources[Sync]):
    """A client of a service or gateway. Threads may share it; `close` it, or use it in a `with` statement.

    Without a `url`, address and token are those of the environment: `TOOLSCRIPT_SERVICE_URL`, `TOOLSCRIPT_TOKEN`.
    `connect_timeout` bounds the wait for a connection, `timeout` every later wait for the server, in seconds.
    A request that may be repeated is sent up to `retries` times more if the server is busy (429, 503) or does not
    answer: after as many seconds as its `Retry-After` says, unless these exceed `max_wait`. `on_retry` is called
    before each wait. `peer` names the server in messages.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        timeout: float = 30.0,
        connect_timeout: float = 5.0,
        retries: int = 2,
        max_wait: float = 60.0,
        on_retry: Callable[[Pause], None] | None = None,
        peer: Peer = SERVER,
    ) -> None:
        self._conversation, token = _conversation(url, token, Retries(retries, max_wait), peer)
        self._sender: Sender = Sender(
            self._conversation, token=token, timeout=timeout, connect_timeout=connect_timeout, on_pause=on_retry
        )

    @property
    def url(self) -> str:
        """Address of the server, without credentials."""
        return self._sender.url

    def close(self) -> None:
        """Close the connections."""
        self._sender.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncClient(_Resources[Async]):
    """`Client` for asyncio: the same names, each method awaited, each list iterated with `async for`."""

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        timeout: float = 30.0,
        connect_timeout: float = 5.0,
        retries: int = 2,
        max_wait: float = 60.0,
        on_retry: Callable[[Pause], None] | None = None,
        peer: Peer = SERVER,
    ) -> None:
        from toolscript.client.http_async import AsyncSender

        self._conversation, token = _conversation(url, token, Retries(retries, max_wait), peer)
        self._sender: AsyncSender = AsyncSender(
            self._conversation, token=token, timeout=timeout, connect_timeout=connect_timeout, on_pause=on_retry
        )

    @property
    def url(self) -> str:
        """Address of the server, without credentials."""
        return self._sender.url

    async def close(self) -> None:
        """Close the connections."""
        await self._sender.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _conversation(url: str | None, token: str | None, retries: Retries, peer: Peer) -> tuple[Conversation, str]:
    """Return the conversation and the token. A token of the environment is not sent to another address."""
    settings = load_client_settings({"service_url": url, "token": "" if url and token is None else token})
    return Conversation(peer, address_of(settings.address, peer), retries), settings.token
