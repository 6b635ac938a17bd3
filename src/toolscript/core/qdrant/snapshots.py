"""Snapshots of whole collections, over Qdrant's REST API: files cannot be sent over gRPC."""

import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

import httpx2

from toolscript.core.errors import IndexRejected, IndexUnavailable, SetupError
from toolscript.core.qdrant.connection import Tls
from toolscript.core.values import OnProgress, Progress

CONNECT_SECONDS = 10.0
# The engine copies or links all files of a collection before it answers.
ANSWER_SECONDS = 6 * 3600.0
BLOCK = 1 << 20
MAX_MESSAGE = 300

_DOWN = "is Qdrant running, and is TOOLSCRIPT_QDRANT_URL its REST address?"


class QdrantSnapshots:
    """Makes, downloads and recovers snapshots on one node."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def is_cluster(self) -> bool:
        """Whether a snapshot would hold the points of this node only."""
        answer = await self._json("GET", "/cluster")
        return bool(answer["status"] != "disabled")

    async def download(self, collection: str, file: BinaryIO, on_progress: OnProgress) -> None:
        """Write a snapshot of the collection. The engine's own copy is deleted, whatever happens."""
        made = await self._json("POST", f"{_of(collection)}?wait=true")
        name, total = str(made["name"]), int(made["size"])
        try:
            await self._save(f"{_of(collection)}/{quote(name)}", file, total, on_progress)
        finally:
            with suppress(IndexUnavailable, IndexRejected):
                await self._json("DELETE", f"{_of(collection)}/{quote(name)}")

    async def recover(self, collection: str, snapshot: Path, sha256: str) -> None:
        """Make the collection of this name from a snapshot, in place of one that is there."""
        url = f"{_of(collection)}/upload?priority=snapshot&wait=true&checksum={sha256}"
        with snapshot.open("rb") as file:
            await self._json("POST", url, files={"snapshot": ("snapshot", file, "application/octet-stream")})

    async def _save(self, url: str, file: BinaryIO, total: int, on_progress: OnProgress) -> None:
        done = 0
        with translated():
            async with self._client.stream("GET", url) as answer:
                if answer.status_code != httpx2.codes.OK:
                    await answer.aread()
                    raise _refused(answer)
                async for block in answer.aiter_bytes(BLOCK):
                    file.write(block)
                    done += len(block)
                    on_progress(Progress("MiB of indexes", done >> 20, total >> 20))
        if done != total:
            raise IndexUnavailable(f"Qdrant sent {done:,} of {total:,} bytes of a snapshot", hint="try again")

    async def _json(self, method: str, url: str, **content: Any) -> Any:
        with translated():
            answer = await self._client.request(method, url, **content)
            if answer.status_code != httpx2.codes.OK:
                raise _refused(answer)
            return answer.json()["result"]


@asynccontextmanager
async def open_snapshots(url: str, *, api_key: str = "", tls: Tls) -> AsyncIterator[QdrantSnapshots]:
    timeout = httpx2.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS)
    headers = {"api-key": api_key} if api_key else {}
    is_secure = url.startswith("https://")
    verify: ssl.SSLContext | bool = _context(tls) if is_secure else True
    async with httpx2.AsyncClient(
        base_url=url.rstrip("/"), headers=headers, timeout=timeout, verify=verify, trust_env=False
    ) as client:
        yield QdrantSnapshots(client)


@contextmanager
def translated() -> Iterator[None]:
    try:
        yield
    except (httpx2.HTTPError, ValueError, KeyError, TypeError) as error:
        raise IndexUnavailable(
            f"Qdrant: {str(error) or type(error).__name__}"[:MAX_MESSAGE], hint=_DOWN
        ) from error


def _context(tls: Tls) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=tls.ca_file or None)
        if tls.client_certificate:
            context.load_cert_chain(tls.client_certificate, tls.client_key)
    except (OSError, ssl.SSLError) as error:
        raise SetupError(
            f"the certificates for Qdrant cannot be read: {error}", hint="name PEM files in TOOLSCRIPT_QDRANT_*"
        ) from None
    return context


def _of(collection: str) -> str:
    return f"/collections/{quote(collection)}/snapshots"


def _refused(answer: httpx2.Response) -> Exception:
    message = f"Qdrant refused a snapshot ({answer.status_code}): {answer.text[:MAX_MESSAGE]}"
    if answer.status_code in (httpx2.codes.UNAUTHORIZED, httpx2.codes.FORBIDDEN):
        return SetupError(message, hint="is TOOLSCRIPT_QDRANT_API_KEY right, and may it write?")
    if answer.status_code >= httpx2.codes.INTERNAL_SERVER_ERROR:
        return IndexUnavailable(message, hint="has Qdrant room on its disk for a copy of the collection?")
    return IndexRejected(message)
