"""A fast embeddings endpoint in a separate process: `python -m` this, with a port.

It returns hash vectors, like the doubles: the tests check isolation, not quality.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import uvicorn

from tests.support.reserved_ports import reserved_port
from toolscript.testing import HashEmbedder

SOON = 60.0


class Endpoint:
    def __init__(self, dimensions: int) -> None:
        self._embedder = HashEmbedder(dimensions=dimensions)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body = b""
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        answer = await self._answer(json.loads(body)) if body else b"{}"
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    async def _answer(self, asked: dict[str, Any]) -> bytes:
        vectors = await self._embedder.embed_texts(asked["input"])
        data = [
            {"object": "embedding", "index": index, "embedding": row.tolist()} for index, row in enumerate(vectors)
        ]
        return json.dumps({"object": "list", "model": asked["model"], "data": data}).encode()


@contextmanager
def endpoint(dimensions: int) -> Iterator[str]:
    """Yield its address."""
    with reserved_port() as port:
        command = [sys.executable, "-m", "tests.e2e.tenants.embedding", str(port), str(dimensions)]
        process = subprocess.Popen(command)
        try:
            url = f"http://127.0.0.1:{port}"
            _until_listening(process, url)
            yield f"{url}/v1"
        finally:
            process.terminate()
            process.wait(SOON)


def _until_listening(process: "subprocess.Popen[bytes]", url: str) -> None:
    ends_at = time.monotonic() + SOON
    while time.monotonic() < ends_at:
        assert process.poll() is None, "the endpoint ended"
        try:
            httpx2.get(url, trust_env=False, verify=False)
        except httpx2.TransportError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("the endpoint did not listen in time")


def main() -> None:
    port, dimensions = map(int, sys.argv[1:])
    uvicorn.run(Endpoint(dimensions), port=port, log_level="error")


if __name__ == "__main__":
    main()
