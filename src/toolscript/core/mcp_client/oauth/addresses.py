"""Which addresses the metadata of a server may send us to: by number, and by what a name resolves to.

A name may resolve to this machine, to a private network or to the metadata of a cloud. So each name is resolved,
every address is checked, and the connection is made to one that was checked.
"""

import asyncio
import ipaddress
import re
import socket
import unicodedata
from collections.abc import Sequence
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from toolscript.core.errors import ServerRejected, ServerUnavailable

# Addresses of version 6 that lead to one of version 4, or into a private net, and are global by the library.
_WRAPPED = tuple(map(ipaddress.IPv6Network, ("::/96", "64:ff9b:1::/48", "2002::/16", "fec0::/10", "5f00::/16")))
# The last four bytes are the public address of version 4 that it leads to, where networks have version 6 alone.
_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
_NUMBER = re.compile("[0-9]+|0x[0-9a-f]*")


async def addresses_of(host: str) -> Sequence[str]:
    """Return the addresses of a name; none for a name that is not known."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


async def checked_addresses(url: str, server_url: str) -> Sequence[str]:
    """Return where to connect for a URL that the metadata of a server name; none: a proxy finds it.

    Raise ServerRejected where any address is of this machine or a private network, and the server is not; raise
    ServerUnavailable for a name that is not known.
    """
    parts = urlsplit(url)
    host, server = plain(parts.hostname or ""), plain(urlsplit(server_url).hostname or "")
    if host == server:
        return ()
    found = await _numbers(host)
    if any(is_private(address) for address in found):
        # Public ones among them would be a way to look private.
        own = await _numbers(server)
        is_local, is_inside = (bool(own) and all(map(test, own)) for test in (is_loopback, is_private))
        if not is_inside or (any(map(is_loopback, found)) and not is_local):
            raise ServerRejected(
                f"its metadata name {host[:200]}, which resolves to an address of this machine or of a private "
                "network: nothing was sent"
            )
    if _has_proxy(parts.scheme, host):
        return ()
    if not found:
        raise ServerUnavailable(f"{host[:200]} cannot be reached: the name is not known")
    return found


async def _numbers(host: str) -> Sequence[str]:
    return (host,) if _address(host) else await addresses_of(host)


def _has_proxy(scheme: str, host: str) -> bool:
    proxies = getproxies()
    return bool(proxies.get(scheme) or proxies.get("all")) and not proxy_bypass(host)


def plain(host: str) -> str:
    """Return a host as a resolver reads it: also with digits of full width, and with a dot at its end."""
    return unicodedata.normalize("NFKC", host).lower().replace("\u3002", ".").rstrip(".")


def is_loopback(host: str) -> bool:
    address = _address(host)
    return (
        address.is_loopback or address.is_unspecified
        if address
        else host == "localhost" or host.endswith(".localhost")
    )


def is_private(host: str) -> bool:
    """Return whether a host is a number of a private network, of this link, or of this machine."""
    address = _address(host)
    if address is None:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address in _TRANSLATED:
        address = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    is_wrapped = isinstance(address, ipaddress.IPv6Address) and any(address in net for net in _WRAPPED)
    return not address.is_global or address.is_multicast or is_wrapped


def is_hidden_number(host: str) -> bool:
    """Return whether a host is a number in a form of resolvers alone, such as `127.1` or `0x7f000001`."""
    return _address(host) is None and _NUMBER.fullmatch(host.rpartition(".")[2]) is not None


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        # That of a link may name the interface.
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
