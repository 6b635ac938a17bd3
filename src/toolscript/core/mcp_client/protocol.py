"""The two generations of the protocol: which one a server speaks, and how a request looks in each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import anyio
from mcp import ClientSession
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
)
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    CONNECTION_CLOSED,
    LOG_LEVEL_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
    Implementation,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from toolscript.core.items import JsonObject
from toolscript.core.mcp_client.relay import Relay
from toolscript.core.version import __version__

CLIENT = Implementation(name="toolscript", version=__version__)


@dataclass
class ProtocolHints:
    """Protocol features a server lacks, kept between attempts so that no attempt repeats a failed probe."""

    needs_handshake: bool = False
    uses_legacy_sse: bool = False


async def negotiate(session: ClientSession, hints: ProtocolHints, probe_seconds: float) -> None:
    """Try a modern protocol, then the handshake of the older ones.

    A server that discovers too slowly for the probe rejects the handshake: it is modern, so discover again.
    """
    if not hints.needs_handshake and await _try_discover(session, hints, probe_seconds):
        return
    try:
        await session.initialize()
        hints.needs_handshake = True
    except MCPError as error:
        if error.code != UNSUPPORTED_PROTOCOL_VERSION:
            raise
        hints.needs_handshake = False
        await session.discover()


async def _try_discover(session: ClientSession, hints: ProtocolHints, probe_seconds: float) -> bool:
    try:
        with anyio.fail_after(probe_seconds):
            await session.discover()
    except MCPError as error:
        # A request before the handshake crashes some servers. Others reject it with the same code and keep
        # running: the handshake shows which.
        hints.needs_handshake = hints.needs_handshake or error.code == CONNECTION_CLOSED
        return False
    except (TimeoutError, ValidationError, RuntimeError):
        # The SDK raises RuntimeError when the server offers only older protocols.
        return False
    return True


def is_modern(protocol: str) -> bool:
    """Return whether a protocol version works without a handshake."""
    return protocol in MODERN_PROTOCOL_VERSIONS


def build_request(
    protocol: str, method: str, params: JsonObject, headers: Mapping[str, str], relay: Relay | None = None
) -> tuple[dict[str, Any], CallOptions]:
    """Return the request's parameters and options; the newer protocol repeats its metadata in every request."""
    options: CallOptions = {"headers": {MCP_PROTOCOL_VERSION_HEADER: protocol}}
    if relay is not None and relay.wants_progress:
        options["on_progress"] = relay.on_progress
    if not is_modern(protocol):
        return dict(params), options
    named = params.get(NAME_BEARING_METHODS.get(method, ""))
    name = {MCP_NAME_HEADER: encode_header_value(named)} if isinstance(named, str) else {}
    options["headers"] = {**options["headers"], MCP_METHOD_HEADER: method, **name, **headers}
    return {**params, "_meta": _envelope(protocol, relay)}, options


def _envelope(protocol: str, relay: Relay | None) -> JsonObject:
    level = relay.log_level if relay else ""
    return {
        PROTOCOL_VERSION_META_KEY: protocol,
        CLIENT_INFO_META_KEY: CLIENT.model_dump(by_alias=True, mode="json", exclude_none=True),
        CLIENT_CAPABILITIES_META_KEY: relay.capabilities if relay else {},
        **({LOG_LEVEL_META_KEY: level} if level else {}),
    }
