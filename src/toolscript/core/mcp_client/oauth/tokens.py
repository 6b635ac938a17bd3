"""The tokens of each server: stored with the secrets, renewed once for all who need them, also across processes.

A mark, which is a file without secrets, stands for each sign-in. It changes with the tokens, so that other
processes notice, and it is locked while one of them renews the tokens.
"""

import asyncio
import hashlib
import logging
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol

from toolscript.core.atomic_files import read_json, write_json_atomically
from toolscript.core.errors import ServerRejected, ServerUnavailable, SetupError, ToolscriptError
from toolscript.core.file_locks import take
from toolscript.core.mcp_client.model import MASK, ServerSpec
from toolscript.core.mcp_client.oauth.grant import Grant, grant_from_json

if TYPE_CHECKING:
    from toolscript.core.mcp_client.oauth.bearer import BearerAuth

LOCK_SECONDS, LOOK_SECONDS = 30.0, 0.05
CHANGE_SECONDS = 0.5
_Stamp = tuple[int, int] | None

log = logging.getLogger(__name__)


class TokenStore(Protocol):
    """Keeps secrets by name; each method may block."""

    def get(self, name: str) -> str | None: ...
    def set(self, name: str, value: str) -> None: ...
    def remove(self, name: str) -> bool: ...


class SignIns:
    """The sign-ins of one data folder. `open_store` is called once there is one."""

    def __init__(self, folder: Path, open_store: Callable[[], TokenStore]) -> None:
        self._folder = folder
        self._open_store = open_store
        self._store: TokenStore | None = None
        self._credentials: dict[str, Credentials] = {}

    @property
    def store(self) -> TokenStore:
        if self._store is None:
            self._store = self._open_store()
        return self._store

    def of(self, spec: ServerSpec) -> "Credentials | None":
        """Return the credentials of a server; None for one that takes none from us."""
        if not spec.may_sign_in:
            return None
        key = _key(spec)
        if key not in self._credentials:
            self._credentials[key] = Credentials(self, spec.name, spec.url, self._mark(key))
        return self._credentials[key]

    def left_of(self, server: str) -> "list[Credentials]":
        """Return the credentials of all sign-ins to servers of this name, whether an entry has them or not."""
        keys = sorted(mark.stem for mark in self._folder.glob("*.json") if _server_of(mark) == server)
        return [Credentials(self, server, "", self._mark(key)) for key in keys]

    def _mark(self, key: str) -> Path:
        return self._folder / f"{key}.json"


class Credentials:
    """Tokens for one server at one address. A server of the same name at another address has its own.

    Without a `url` they are for whichever address was signed in to: to revoke them, not to use them.
    `is_wanted`: the server refuses to answer without a sign-in, and waits for one.
    """

    def __init__(self, owner: SignIns, server: str, url: str, mark: Path) -> None:
        self.url = url
        self.is_wanted = False
        self._server = server
        self._name = f"oauth:{server}:{mark.stem}"
        self._owner = owner
        self._mark = mark
        self._seen: _Stamp = None
        self._grant: Grant | None = None
        self._renewing: asyncio.Task[Grant | None] | None = None

    def auth(self, on_retry: Callable[[], None] = lambda: None) -> "BearerAuth":
        """Return what adds the token to requests. `on_retry`: a refused request is sent again."""
        from toolscript.core.mcp_client.oauth.bearer import BearerAuth

        return BearerAuth(self, on_retry)

    async def load(self) -> Grant | None:
        """Return the stored grant, also one without tokens."""
        stamp = self._stamp()
        if stamp != self._seen:
            text = await asyncio.to_thread(self._owner.store.get, self._name) if stamp else None
            grant = grant_from_json(text) if text else None
            self._grant = grant if grant is not None and self.url in ("", grant.server_url) else None
            self._seen = stamp
        return self._grant

    async def save(self, grant: Grant) -> None:
        """Store a sign-in. A process that renews the tokens of the last one does not store them over it."""
        async with self._locked():
            await self._store(grant)

    async def _store(self, grant: Grant) -> None:
        await asyncio.to_thread(self._owner.store.set, self._name, grant.to_json())
        about = {"server": self._server, "sign_in": grant.sign_in}
        await asyncio.to_thread(write_json_atomically, self._mark, about)
        self._grant, self._seen = grant, self._stamp()

    async def forget(self) -> None:
        """Forget tokens and registration, here and in other processes."""
        async with self._locked():
            await asyncio.to_thread(self._owner.store.remove, self._name)
            self._mark.unlink(missing_ok=True)
            self._grant, self._seen = None, None

    async def access_token(self) -> str:
        """Return a token that is valid for a while; an empty text if there is none."""
        grant = await self.load()
        if grant is None or not grant.access_token:
            return ""
        if grant.is_due():
            grant = await self._renewed(grant.access_token)
        return grant.access_token if grant is not None else ""

    async def replaced(self, refused: str) -> str:
        """Return another token than this one, which the server refused; an empty text if there is none."""
        grant = await self._renewed(refused)
        return grant.access_token if grant is not None and grant.access_token != refused else ""

    def masked(self, text: str) -> str:
        """Return a text of the server without the tokens that it got from us."""
        grant = self._grant
        tokens = (grant.access_token, grant.refresh_token) if grant is not None else ()
        for token in filter(None, tokens):
            text = text.replace(token, MASK)
        return text

    def sign_in(self) -> str:
        """Return the id of the sign-in; an empty text without one."""
        try:
            return str(read_json(self._mark)["sign_in"])
        except (OSError, ValueError, KeyError, TypeError):
            return ""

    async def until_changed(self, sign_in: str) -> None:
        """Wait until it is another sign-in, or none, because of whichever process. New tokens are no other one."""
        while self.sign_in() == sign_in:  # noqa: ASYNC110 - another process changes it
            await asyncio.sleep(CHANGE_SECONDS)

    async def _renewed(self, token: str) -> Grant | None:
        """Renew the grant with this token, once for all who wait. A caller that is cancelled does not end it."""
        if self._renewing is None or self._renewing.done():
            self._renewing = asyncio.create_task(self._renew(token))
        return await asyncio.shield(self._renewing)

    async def _renew(self, token: str) -> Grant | None:
        from toolscript.core.mcp_client.oauth.exchanges import Refused, is_unknown_client
        from toolscript.core.mcp_client.oauth.flow import refresh

        async with self._locked():
            grant = await self.load()
            if grant is None or grant.access_token != token:
                # Another process was faster, or the person has signed out.
                return grant
            if not grant.refresh_token:
                return None if grant.has_expired() else grant
            try:
                renewed = await refresh(grant)
            except Refused as error:
                log.warning("a sign-in has ended", extra={"part": self._server, "reason": error.message})
                renewed = grant.without_tokens(knows_client=not is_unknown_client(error))
            except (ServerRejected, ServerUnavailable):
                if grant.has_expired():
                    raise
                return grant
            await self._keep(renewed)
            return renewed

    async def _keep(self, grant: Grant) -> None:
        try:
            await self._store(grant)
        except (ToolscriptError, OSError) as error:
            # The server has ended the old token: without this one the person would have to sign in again.
            log.warning("new tokens cannot be stored", extra={"part": self._server, "reason": str(error)})
            self._grant, self._seen = grant, self._stamp()

    @asynccontextmanager
    async def _locked(self) -> AsyncIterator[None]:
        """Hold the lock of this sign-in; only one process renews its tokens."""
        with await asyncio.to_thread(_open_lock, self._mark.with_suffix(".lock")) as lock:
            ends_at = time.monotonic() + LOCK_SECONDS
            while True:
                if take(lock):
                    break
                if time.monotonic() > ends_at:
                    raise ServerUnavailable(f"another process renews the tokens of {self._server}")
                await asyncio.sleep(LOOK_SECONDS)
            yield

    def _stamp(self) -> _Stamp:
        try:
            about = self._mark.stat()
        except OSError:
            return None
        return about.st_mtime_ns, about.st_ino


def _key(spec: ServerSpec) -> str:
    return hashlib.sha256(f"{spec.name}\n{spec.url}".encode("utf-8", "replace")).hexdigest()[:16]


def _server_of(mark: Path) -> str:
    try:
        return str(read_json(mark)["server"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _open_lock(path: Path) -> IO[bytes]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return open(path, "ab", opener=_private)
    except OSError as error:
        raise SetupError(
            f"{path.parent} cannot be written: {error.strerror}",
            hint="choose another folder with --data-dir or TOOLSCRIPT_DATA_DIR",
        ) from error


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
