"""Discovery: whether a server asks for a sign-in, at which authorization server, and for what.

Addresses in metadata come from servers. Each must be https, or on this machine if the server is, too.
"""

import ipaddress
import re
import unicodedata
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    issuers_match,
)
from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata
from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url
from pydantic import ValidationError

from toolscript.core.errors import ServerRejected, ServerUnavailable
from toolscript.core.mcp_client.model import ServerSpec, Transport
from toolscript.core.mcp_client.oauth.challenge import Challenge
from toolscript.core.mcp_client.oauth.exchanges import Answer, place_of, send, shown, without_blanks

_PING = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
_OK, _UNAUTHORIZED = 200, 401
_CHALLENGES = (401, 403)
S256 = "S256"
# Addresses of version 6 that lead to one of version 4, or into a private net, and are global by the library.
_WRAPPED = tuple(
    map(ipaddress.IPv6Network, ("::/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "fec0::/10", "5f00::/16"))
)
_NUMBER = re.compile("[0-9]+|0x[0-9a-f]*")


@dataclass(frozen=True)
class Discovered:
    """`resource` is what a token is for. `scopes` are what the server asks for; None: it names none."""

    resource: str
    metadata: OAuthMetadata
    scopes: tuple[str, ...] | None = None

    @property
    def issuer(self) -> str:
        return str(self.metadata.issuer)

    @property
    def recipient(self) -> str:
        """The host that gets the code, if it is another than the one whose page a person sees."""
        page, token = (
            place_of(str(self.metadata.authorization_endpoint)),
            place_of(str(self.metadata.token_endpoint)),
        )
        return token if token != page else ""


async def ask_for_challenge(spec: ServerSpec) -> Challenge | None:
    """Ask the server without a token; return its challenge, or None if it answers."""
    stream = {"Accept": "application/json, text/event-stream", **spec.headers}
    if spec.transport is Transport.SSE:
        return _challenge_of(await send("GET", spec.url, stream, headers_only=True))
    posted = {"Content-Type": "application/json", **stream}
    return _challenge_of(await send("POST", spec.url, posted, _PING, headers_only=True))


def _challenge_of(answer: Answer) -> Challenge | None:
    if answer.status not in _CHALLENGES:
        return None
    challenge = Challenge.of(answer.status, answer.headers.get("www-authenticate", ""))
    return challenge if answer.status == _UNAUTHORIZED or challenge.wants_more else None


async def needs_sign_in(spec: ServerSpec, challenge: Challenge | None) -> bool:
    """Return whether a server that refused a request wants a sign-in: it says so, or its metadata are there."""
    if challenge is None:
        return False
    if challenge.resource_metadata:
        return True
    try:
        await discover(spec, challenge)
    except (ServerRejected, ServerUnavailable):
        return False
    return True


async def discover(spec: ServerSpec, challenge: Challenge | None) -> Discovered:
    """Read the metadata of the server (RFC 9728), then of its authorization server (RFC 8414)."""
    resource_metadata = await _resource_metadata(spec, challenge.resource_metadata if challenge else "")
    canonical = without_default_port(resource_url_from_server_url(spec.url))
    if resource_metadata is None:
        # Servers of the protocol of March 2025 are their own authorization servers, and name no resource.
        parts = urlsplit(canonical)
        metadata = await _server_metadata(spec, "", f"{parts.scheme}://{parts.netloc}")
        return Discovered(urlunsplit(parts._replace(query="")), metadata, challenge.scopes if challenge else None)
    resource, issuer = str(resource_metadata.resource), str(resource_metadata.authorization_servers[0])
    if not check_resource_allowed(requested_resource=canonical, configured_resource=resource):
        raise ServerRejected(
            f"the server's metadata are of another resource, {shown(resource)}: no token for it is requested"
        )
    require_safe(issuer, spec.url)
    supported = resource_metadata.scopes_supported
    scopes = (challenge and challenge.scopes) or (None if supported is None else tuple(supported))
    return Discovered(resource, await _server_metadata(spec, issuer, issuer), scopes)


def without_default_port(url: str) -> str:
    """Return an address as metadata are read: `https://host:443` is `https://host`."""
    parts = urlsplit(url)
    is_default = (parts.scheme, parts.port) in (("https", 443), ("http", 80))
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition(":")[0])) if is_default else url


def require_issuer(spec: ServerSpec, found: Discovered, known: str) -> None:
    """Raise where the server names another authorization server than the entry, or than last time.

    A client that was registered by hand is known to one: its secret must not reach another. `known` is the issuer
    of the last sign-in.
    """
    expected = spec.oauth.issuer or (known if spec.oauth.client_secret else "")
    if expected and not issuers_match(expected, found.issuer):
        step = "correct oauth.issuer" if spec.oauth.issuer else f"`toolscript logout {spec.name}`"
        raise ServerRejected(
            f"{spec.name} names another authorization server, {shown(found.issuer)}, than {shown(expected)}: "
            "nothing was sent",
            hint=f"if this is right, {step} first",
        )


async def _resource_metadata(spec: ServerSpec, named: str) -> ProtectedResourceMetadata | None:
    for url in build_protected_resource_metadata_discovery_urls(named or None, spec.url):
        require_safe(url, spec.url)
        data = await _document(url)
        if data is not None:
            try:
                return ProtectedResourceMetadata.model_validate(data)
            except ValidationError:
                continue
    return None


async def _server_metadata(spec: ServerSpec, issuer: str, expected: str) -> OAuthMetadata:
    for url in build_oauth_authorization_server_metadata_discovery_urls(issuer or None, spec.url):
        require_safe(url, spec.url)
        data = await _document(url)
        if data is None:
            continue
        try:
            metadata = OAuthMetadata.model_validate(data)
        except ValidationError:
            continue
        return _checked(metadata, expected, spec.url)
    raise ServerRejected(f"{place_of(expected)} has no metadata of an authorization server")


def _checked(metadata: OAuthMetadata, expected: str, server_url: str) -> OAuthMetadata:
    if not issuers_match(str(metadata.issuer), expected):
        raise ServerRejected(
            f"the metadata of {place_of(expected)} are of another issuer, {shown(str(metadata.issuer))}"
        )
    if S256 not in (metadata.code_challenge_methods_supported or ()):
        raise ServerRejected(
            f"{place_of(expected)} does not support PKCE with S256, which a safe sign-in requires"
        )
    endpoints = (
        metadata.authorization_endpoint,
        metadata.token_endpoint,
        metadata.registration_endpoint,
        metadata.revocation_endpoint,
    )
    for endpoint in filter(None, endpoints):
        require_safe(str(endpoint), server_url)
    return metadata


async def _document(url: str) -> Any:
    """Return a document; None where there is none. A redirect is not followed: it may lead anywhere."""
    answer = await send("GET", url)
    if answer.status >= 500:
        # A fault says nothing about whether there is one: the next address must not be taken for it.
        raise ServerUnavailable(f"{place_of(url)} answered HTTP {answer.status}")
    return without_blanks(answer.to_json()) if answer.status == _OK else None


def require_safe(url: str, server_url: str) -> None:
    """Raise for an address in metadata that a remote server may not send us to."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host, parts = "", urlsplit("")
    host, server = _plain(host), _plain(urlsplit(server_url).hostname or "")
    is_local = is_loopback(host)
    if is_local and is_loopback(server) and parts.scheme in ("http", "https"):
        return
    is_unsafe = is_local or _is_hidden_number(host) or (_is_private(host) and not _is_private(server))
    if is_unsafe or parts.scheme != "https" or not host or parts.username:
        raise ServerRejected(
            f"its metadata name {shown(parts.scheme)}://{place_of(url)}, which is not used: "
            "addresses must be https, and public"
        )


def _plain(host: str) -> str:
    """Return a host as a resolver reads it: also with digits of full width, and with a dot at its end."""
    return unicodedata.normalize("NFKC", host).lower().replace("\u3002", ".").rstrip(".")


def is_loopback(host: str) -> bool:
    address = _address(host)
    return address.is_loopback if address else host == "localhost" or host.endswith(".localhost")


def _is_private(host: str) -> bool:
    """Return whether a host is a number of a private network. A name must have a certificate, and is no risk."""
    address = _address(host)
    if address is None:
        return False
    is_wrapped = isinstance(address, ipaddress.IPv6Address) and any(address in net for net in _WRAPPED)
    return not address.is_global or address.is_multicast or is_wrapped


def _is_hidden_number(host: str) -> bool:
    """Return whether a host is a number in a form of resolvers alone, such as `127.1` or `0x7f000001`."""
    return _address(host) is None and _NUMBER.fullmatch(host.rpartition(".")[2]) is not None


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
