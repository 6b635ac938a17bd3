"""The redirect address on this machine: a listener on 127.0.0.1 for one request of the person's browser."""

import asyncio
import hmac
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from html import escape
from urllib.parse import parse_qsl, urlsplit

from toolscript.core.errors import SetupError

HOST, PATH = "127.0.0.1", "/callback"
HEAD_SECONDS, ANSWER_SECONDS = 10.0, 60.0
MAX_HEAD = 16 * 1024

_HEADERS = (
    "Content-Type: text/html; charset=utf-8\r\n"
    "Cache-Control: no-store\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\n"
    "Connection: close\r\n"
)
_PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Toolscript</title>'
    '<body style="font-family: sans-serif; margin: 4em auto; max-width: 30em"><h1>{title}</h1><p>{text}</p>'
)


class Callback:
    """The first request with our `state` is the answer; its browser gets a page once `finish` says how.

    Any page that is open in a browser here can send others, which must not end the sign-in.
    """

    def __init__(self) -> None:
        self.redirect_uri = self.state = ""
        self.answer: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()
        self._outcome: asyncio.Future[tuple[str, str]] = asyncio.get_running_loop().create_future()
        self._answering: asyncio.StreamReader | None = None
        self._shown = asyncio.Event()

    async def finish(self, title: str, text: str) -> None:
        """Show the outcome to a browser that waits for it."""
        self._outcome.set_result((title, text))
        if self._answering is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(HEAD_SECONDS):
                    await self._shown.wait()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            async with asyncio.timeout(ANSWER_SECONDS):
                writer.write(await self._respond(head, reader))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()
            if reader is self._answering:
                self._shown.set()

    async def _respond(self, head: str, reader: asyncio.StreamReader) -> bytes:
        first, *lines = head.split("\r\n")
        method, _, rest = first.partition(" ")
        target = urlsplit(rest.partition(" ")[0])
        hosts = [line.partition(":")[2].strip() for line in lines if line.lower().startswith("host:")]
        # Another name for this address would be a page that plays it (DNS rebinding).
        if method != "GET" or target.path != PATH or hosts != [urlsplit(self.redirect_uri).netloc]:
            return _page("404 Not Found", "Not found", "This address takes the answer to one sign-in.")
        if self.answer.done():
            return _page("410 Gone", "Already answered", "This sign-in has had its answer.")
        answer = dict(parse_qsl(target.query))
        if not self.state or not hmac.compare_digest(answer.get("state", "").encode(), self.state.encode()):
            return _page("400 Bad Request", "Not this sign-in", "This answer belongs to another sign-in.")
        self._answering = reader
        self.answer.set_result(answer)
        return _page("200 OK", *await asyncio.shield(self._outcome))


@asynccontextmanager
async def listening(port: int, preferred: int = 0) -> AsyncIterator[Callback]:
    """Listen for the answer. `port`: the one that must be used; else the `preferred` one if it is free."""
    callback = Callback()
    server = await _listen(callback, port, preferred)
    callback.redirect_uri = f"http://{HOST}:{server.sockets[0].getsockname()[1]}{PATH}"
    try:
        yield callback
    finally:
        server.close()


async def _listen(callback: Callback, port: int, preferred: int) -> asyncio.Server:
    try:
        return await asyncio.start_server(callback.handle, HOST, port or preferred, limit=MAX_HEAD)
    except OSError as error:
        if not port and preferred:
            return await asyncio.start_server(callback.handle, HOST, 0, limit=MAX_HEAD)
        raise SetupError(
            f"port {port} of this machine cannot be used: {error.strerror}",
            hint="end the program that has it, or change oauth.callbackPort",
        ) from error


def _page(status: str, title: str, text: str) -> bytes:
    body = _PAGE.format(title=escape(title), text=escape(text)).encode()
    return f"HTTP/1.1 {status}\r\n{_HEADERS}Content-Length: {len(body)}\r\n\r\n".encode() + body
