"""Whose a request is, for fair places: known before its token is verified, so that refusals stay cheap.

A token counts for its tenant once it was verified; until then, and without one, the address counts. So nobody
takes the places of a tenant whose token it does not have.
"""

from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from ipaddress import IPv6Address, ip_address, ip_network
from typing import NamedTuple, Protocol

from starlette.requests import Request
from starlette.types import Scope

# Key of the scope's state: the place of a request.
PLACE = "admission_place"
# Prefix length of one customer's IPv6 network; addresses within it cost nothing, so they share a budget.
CUSTOMER_PREFIX = 64
UNKNOWN_ADDRESS = "unknown"
MAX_TOKENS = 10_000


class Client(NamedTuple):
    """A tenant or an address. `at_once`: its requests of one kind that may run at once; None: any number."""

    name: str = ""
    at_once: int | None = None


NOBODY = Client()
ADMINISTRATOR = Client("admin")


class Place(Protocol):
    def counts_as(self, client: Client, *, has_token: bool) -> None: ...


def counts_as(request: Request, client: Client, *, has_token: bool = False) -> None:
    """Count a request for a client that is known now. `has_token`: its later requests are known by their token."""
    place: Place | None = request.scope.get("state", {}).get(PLACE)
    if place is not None:
        place.counts_as(client, has_token=has_token)


class Clients:
    """`proxies` are addresses or networks whose X-Forwarded-For is trusted."""

    def __init__(self, proxies: Sequence[str] = ()) -> None:
        self._proxies = [ip_network(proxy) for proxy in proxies]
        self._by_token: OrderedDict[bytes, Client] = OrderedDict()

    def of(self, scope: Scope) -> Client:
        return self._by_token.get(_digest_of_token(scope)) or Client(network_of(self._address(scope)))

    def learn(self, scope: Scope, client: Client) -> None:
        digest = _digest_of_token(scope)
        if digest:
            self._by_token[digest] = client
            self._by_token.move_to_end(digest)
            if len(self._by_token) > MAX_TOKENS:
                self._by_token.popitem(last=False)

    def _address(self, scope: Scope) -> str:
        """Return the address; behind trusted proxies, the last one that none of them has."""
        address = str((scope.get("client") or ("",))[0])
        if not self._proxies or not self._is_proxy(address):
            return address
        # A proxy may add a line of its own instead of an entry.
        lines = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for")
        forwarded = [entry.strip() for entry in lines.decode("latin-1").split(",")]
        return next((entry for entry in reversed(forwarded) if entry and not self._is_proxy(entry)), address)

    def _is_proxy(self, address: str) -> bool:
        try:
            return any(ip_address(address) in proxy for proxy in self._proxies)
        except ValueError:
            return False


def network_of(host: str) -> str:
    """Return the address, for IPv6 its customer's network."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return UNKNOWN_ADDRESS
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ip_network((address, CUSTOMER_PREFIX), strict=False))


def _digest_of_token(scope: Scope) -> bytes:
    value = _header(scope, b"authorization")
    return blake2b(value, digest_size=16).digest() if value else b""


def _header(scope: Scope, wanted: bytes) -> bytes:
    return next((value for name, value in scope["headers"] if name == wanted), b"")
