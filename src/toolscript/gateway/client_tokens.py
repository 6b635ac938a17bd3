"""The tokens of clients: each entry that reaches the gateway over HTTP has one of its own, which can be revoked.

A client's token finds, lists and calls tools. What only a person may do needs the gateway's own token, which is
written into no client's entry: an agent could approve itself with it.
"""

import hmac
import json
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from toolscript.core.errors import InvalidRequest, SetupError
from toolscript.core.file_locks import take
from toolscript.core.own_files import PRIVATE_FOLDER, make_private, private, read_own_file, write_private
from toolscript.core.text import readable
from toolscript.gateway.callers import MAX_NAME

# Whose token `gateway env` prints, where it names no client.
SHELL = "shell"
# How one begins: none of them can be a gateway's own.
_BEGIN = "tsc_"
MAX_CLIENTS = 1_000
LOCK_SECONDS, LOOK_SECONDS = 5.0, 0.01
_FILE = "clients.json"

# What a client's token reaches, by the first parts of a path: to find, list and call. A route that is not here
# needs the person's own credential.
_ROOTS = ("/search", "/tools", "/servers", "/health", "/livez", "/runtime", "/mcp", "/openapi.json")
_RESOURCES = ("tools", "servers")
_READ = ("reviews",)


def is_for_clients(method: str, path: str) -> bool:
    """Return whether a client's token is enough for this request. `path`: without the prefix of a workspace."""
    parts = path.split("/")[1:]
    if parts[:2] == ["api", "v1"]:
        resource = parts[2] if len(parts) > 2 else ""
        return resource in _RESOURCES or (resource in _READ and len(parts) == 3 and method in ("GET", "HEAD"))
    return f"/{parts[0]}" in _ROOTS


def is_of_client(token: str) -> bool:
    """Return whether a token is one of a client, also of one that is revoked."""
    return token.startswith(_BEGIN)


@dataclass(frozen=True)
class ClientToken:
    client: str
    created_at: float

    def to_json(self) -> dict[str, object]:
        when = datetime.fromtimestamp(self.created_at, UTC)
        return {"client": self.client, "created_at": when.isoformat(timespec="seconds")}


class ClientTokens:
    """The tokens in one file beside the gateway's own. A gateway that runs reads it again when it has changed."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _FILE
        self._seen: tuple[int, int, int] | None = None
        self._tokens: Mapping[str, Mapping[str, Any]] = {}

    def client_of(self, token: str) -> str:
        """Return the client that has this token; empty if none has it, or has it any more."""
        found = ""
        for client, entry in self._read().items():
            if hmac.compare_digest(str(entry["token"]).encode(), token.encode()):
                found = client
        return found

    def known(self, client: str) -> str:
        """Return the token of this client; empty if it has none."""
        entry = self._read().get(client)
        return str(entry["token"]) if entry else ""

    def of(self, client: str) -> str:
        """Return the token of this client, which is made if it has none."""
        if not client or client != readable(client) or len(client) > MAX_NAME:
            raise InvalidRequest("this cannot be a client's name", hint=f"at most {MAX_NAME} plain characters")
        with self._changing() as tokens:
            if client not in tokens and len(tokens) >= MAX_CLIENTS:
                raise InvalidRequest(f"{MAX_CLIENTS} clients have one", hint="`toolscript gateway revoke NAME`")
            new = {"token": _BEGIN + secrets.token_urlsafe(32), "created_at": time.time()}
            return str(tokens.setdefault(client, new)["token"])

    def revoke(self, client: str) -> bool:
        """Make the token of this client void; return whether it had one."""
        if not self.known(client):
            return False
        with self._changing() as tokens:
            return tokens.pop(client, None) is not None

    def all(self) -> list[ClientToken]:
        return [ClientToken(client, entry["created_at"]) for client, entry in sorted(self._read().items())]

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        try:
            make_private(self._path.parent)
            self._path.parent.chmod(PRIVATE_FOLDER)
            with open(self._path.with_suffix(".lock"), "ab", opener=private) as lock:
                _wait_for(lock)
                tokens = dict(self._read())
                before = json.dumps(tokens)
                yield tokens
                if json.dumps(tokens) != before:
                    write_private(self._path, json.dumps(tokens))
        except OSError as error:
            raise SetupError(
                f"{self._path} cannot be written: {error.strerror}",
                hint="choose another folder with --data-dir or TOOLSCRIPT_DATA_DIR",
            ) from error

    def _read(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the tokens by client. A file that cannot be read grants nothing."""
        try:
            about = self._path.stat()
            seen = about.st_mtime_ns, about.st_ino, about.st_size
            if seen != self._seen:
                self._tokens = _tokens_in(read_own_file(self._path))
                self._seen = seen
        except (OSError, ValueError, RecursionError):
            self._seen, self._tokens = None, {}
        return self._tokens


def _tokens_in(text: str) -> dict[str, Mapping[str, Any]]:
    data = json.loads(text)
    entries = data.items() if isinstance(data, dict) else ()
    return {
        client: entry
        for client, entry in entries
        if isinstance(entry, dict)
        and isinstance(token := entry.get("token"), str)
        and token
        and isinstance(entry.get("created_at"), int | float)
    }


def _wait_for(lock: Any) -> None:
    deadline = time.monotonic() + LOCK_SECONDS
    while not take(lock):
        if time.monotonic() > deadline:
            raise TimeoutError(0, "another process changes it")
        time.sleep(LOOK_SECONDS)
