"""What every client asks first, and what a gateway answered: for `toolscript mcp` while the next one starts.

A gateway asks itself when it starts, before it says that it is ready: what takes long the first time is done then.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from toolscript.core.version import __version__
from toolscript.gateway.bridge_http import Address, Exchange

Message = dict[str, Any]

FILE = "first_answers.json"
# Those that begin with `initialize`. They have the same answers, but for the version itself.
OLDER = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
CURRENT = "2026-07-28"
OWN, SPLIT = "own", "split"
PIPE_HEADER = "x-toolscript-pipe"
FIRST = _INITIALIZE, _DISCOVER, _LIST = "initialize", "server/discover", "tools/list"
_ITSELF = {"name": "toolscript", "version": __version__}


class FirstAnswers:
    """Those of the last gateway of this data folder, else those of the package."""

    def __init__(self, data_folder: Path, *, split: bool) -> None:
        paths = (data_folder / FILE, Path(__file__).with_name(FILE))
        self._answers = next(filter(None, (_read(path, SPLIT if split else OWN) for path in paths)), {})

    def to(self, method: str, params: Mapping[str, Any], version: str) -> Message | None:
        """Return the result; None for a question that is not one of the first ones."""
        if method not in FIRST or params.get("cursor"):
            return None
        answers = self._answers.get(CURRENT if version == CURRENT else OLDER[-1], {})
        result = answers.get(method)
        if not isinstance(result, dict):
            return None
        if method != _INITIALIZE:
            # The gateway that starts may have other servers to name.
            return {**result, "ttlMs": 0} if "ttlMs" in result else result
        return {**result, "protocolVersion": version if version in OLDER else OLDER[-1]}


def _read(path: Path, kind: str) -> Message:
    try:
        known = json.loads(path.read_bytes())
        return dict(known[kind]) if known["version"] == __version__ else {}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}


def ask_first(url: str, token: str) -> Message:
    """Ask a gateway what clients ask first. Raises NotSent and Lost."""
    answers: Message = {"version": __version__}
    for kind in (OWN, SPLIT):
        versions = (OLDER[-1], CURRENT)
        answers[kind] = {
            version: dict(_asked(Address(url), token, version, split=kind == SPLIT)) for version in versions
        }
    return answers


def _asked(address: Address, token: str, version: str, *, split: bool) -> Iterator[tuple[str, Message]]:
    headers = {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "Authorization": f"Bearer {token}",
        PIPE_HEADER: json.dumps({"split": split}),
        "MCP-Protocol-Version": version,
    }
    meta = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": _ITSELF,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    begin: Message = {"protocolVersion": version, "capabilities": {}, "clientInfo": _ITSELF}
    # The list first: by it the server learns the names that its other answers have.
    if version == CURRENT:
        asked: tuple[tuple[str, Message], ...] = ((_LIST, {"_meta": meta}), (_DISCOVER, {"_meta": meta}))
    else:
        asked = ((_LIST, {}), (_INITIALIZE, begin))
    for method, params in asked:
        exchange = Exchange()
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        exchange.send(address, "POST", "/mcp", {**headers, "Mcp-Method": method}, body)
        for data in exchange.messages():
            result = json.loads(data).get("result")
            if isinstance(result, dict):
                yield method, result
        if session := exchange.headers.get("mcp-session-id"):
            ending = Exchange()
            ending.send(address, "DELETE", "/mcp", {**headers, "Mcp-Session-Id": session}, b"")
            ending.read()
