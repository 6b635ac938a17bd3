"""Requests as the SDK's session does not make them: answers come back as the server sent them.

The SDK checks a whole page of tools at once, so that one bad tool would hide all the others.
"""

from collections.abc import Mapping
from typing import Any

from mcp.shared.dispatcher import CallOptions
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
    PROTOCOL_VERSION_META_KEY,
    Implementation,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolscript import __version__
from toolscript.model.items import JsonObject

CLIENT = Implementation(name="toolscript", version=__version__)


def is_modern(protocol: str) -> bool:
    return protocol in MODERN_PROTOCOL_VERSIONS


def addressed(
    protocol: str, method: str, params: JsonObject, headers: Mapping[str, str]
) -> tuple[dict[str, Any], CallOptions]:
    """A request's parameters and headers as the protocol wants them: the newer one says everything each time."""
    options: CallOptions = {"headers": {MCP_PROTOCOL_VERSION_HEADER: protocol}}
    if not is_modern(protocol):
        return dict(params), options
    named = params.get(NAME_BEARING_METHODS.get(method, ""))
    name = {MCP_NAME_HEADER: encode_header_value(named)} if isinstance(named, str) else {}
    options["headers"] = {**options["headers"], MCP_METHOD_HEADER: method, **name, **headers}
    return {**params, "_meta": _envelope(protocol)}, options


def _envelope(protocol: str) -> JsonObject:
    return {
        PROTOCOL_VERSION_META_KEY: protocol,
        CLIENT_INFO_META_KEY: CLIENT.model_dump(by_alias=True, mode="json", exclude_none=True),
        CLIENT_CAPABILITIES_META_KEY: {},
    }
