"""The client whose request is being answered, and the terms of its call. Apart: every command loads this."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from toolscript.core.text import readable

# Clients that are no MCP clients, which have the names that they state.
CLI, HTTP, PYTHON, MCP = "cli", "http", "python", "mcp"
# Searches of the gateway itself, such as for the nearest names of an unknown tool. Only searches can be its own.
ITSELF = "-"
CLIENT_HEADER = "x-toolscript-client"
# In the scope of a request: the client whose token it has, and so whose it is, whatever it says.
CLIENT_OF_TOKEN = "toolscript.client_of_token"  # noqa: S105 - no password
MAX_NAME = 200

_client: ContextVar[str] = ContextVar("client", default=PYTHON)


def current_client() -> str:
    """Return the name of the client whose request is being answered."""
    return _client.get()


@contextmanager
def client_is(name: str) -> Iterator[None]:
    """Attribute what is done in the context to a client, which may state any name but the gateway's own."""
    stated = readable(name)[:MAX_NAME]
    with _is(stated if stated not in ("", ITSELF) else MCP):
        yield


@contextmanager
def _is(name: str) -> Iterator[None]:
    token = _client.set(name)
    try:
        yield
    finally:
        _client.reset(token)


def by_itself() -> AbstractContextManager[None]:
    """Attribute what is done in the context to the gateway, so that it is not logged."""
    return _is(ITSELF)


class CallTerms(NamedTuple):
    """What a call says of itself: the `server__tool` that a person confirmed, and the highest risk it may have."""

    confirmed: str = ""
    max_risk: str = ""


_terms: ContextVar[CallTerms] = ContextVar("terms", default=CallTerms())  # noqa: B039 - a tuple


def current_terms() -> CallTerms:
    return _terms.get()


@contextmanager
def on_terms(terms: CallTerms) -> Iterator[None]:
    """Make the calls of the context on these terms."""
    token = _terms.set(terms)
    try:
        yield
    finally:
        _terms.reset(token)
