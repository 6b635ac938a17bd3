"""A real `serve` with slow or silent clients: they block neither connections nor the shutdown."""

import asyncio
import json
import signal
import subprocess
from collections.abc import Iterator

import pytest

from tests.conftest import Installation, fresh_database, fresh_installation
from tests.e2e.commands import run, run_here
from tests.e2e.served import received, served
from tests.support.reserved_ports import reserved_port
from toolscript.core.settings.service import Settings
from toolscript.server import serve

HALF_HEADERS = b"POST /api/v1/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-"
HALF_BODY = HALF_HEADERS + b"Type: application/json\r\nContent-Length: 100\r\n\r\n" + b'{"query": '
RECEIVE_SECONDS = "toolscript.server.serve.RECEIVE_SECONDS"
MANY, FEWER_FILES = 500, 400


@pytest.fixture(scope="module")
def indexed(engines: Settings, migrated_database: str, model_folder: str) -> Iterator[dict[str, str]]:
    with (
        fresh_database(engines, migrated_database) as url,
        fresh_installation(engines, url, model_folder) as installation,
    ):
        run_here(installation.environment, "worker", "--drain")
        yield installation.environment


@pytest.mark.requirement("OP-006")
def test_an_incomplete_request_times_out(indexed: dict[str, str]) -> None:
    assert serve.RECEIVE_SECONDS <= 20
    with served(indexed, constants={RECEIVE_SECONDS: 1.0}) as server:
        for half in (HALF_HEADERS, HALF_BODY):
            with server.send(half) as sender:
                output = received(sender)
                assert output.startswith(b"HTTP/1.1 408 ")
                assert b"did not arrive within 1 seconds" in output
        with server.send(b"") as sender:
            assert received(sender) == b""
        assert server.get("/livez").status_code == 200


@pytest.mark.nightly
@pytest.mark.requirement("OP-006")
@pytest.mark.parametrize("half", [HALF_HEADERS, HALF_BODY])
def test_more_incomplete_requests_than_open_files_block_no_other_client(
    indexed: dict[str, str], half: bytes
) -> None:
    with served(indexed, FEWER_FILES, {RECEIVE_SECONDS: 600.0}) as server:
        senders = [server.send(half) for _ in range(MANY)]
        try:
            for _ in range(5):
                assert server.get("/livez").status_code == 200
        finally:
            for sender in senders:
                sender.close()


@pytest.mark.requirement("OP-006")
def test_a_client_with_half_a_body_does_not_block_the_shutdown(indexed: dict[str, str]) -> None:
    soon = {**indexed, "TOOLSCRIPT_SHUTDOWN_SECONDS": "1"}
    with served(soon, constants={RECEIVE_SECONDS: 600.0}) as server, server.send(HALF_BODY) as sender:
        assert server.get("/livez").status_code == 200
        server.process.terminate()
        assert server.ended() == 0
        received(sender)


@pytest.mark.requirement("API-003")
def test_every_refusal_of_a_long_url_is_an_error_of_the_api(indexed: dict[str, str]) -> None:
    with served(indexed) as server:
        with server.send(_listing("%F0%9F%98%80" * 4_000 + "&cursor=" + "a" * 4_000)) as sender:
            longest = received(sender)
        with server.send(_listing("a" * 65_535)) as sender:
            too_long = received(sender)
        assert server.get("/livez").status_code == 200
    # The application reads it, and has no issuer of tokens.
    assert longest.startswith(b"HTTP/1.1 503 ")
    assert b"TOOLSCRIPT_JWT_KEYS" in longest
    assert too_long.startswith(b"HTTP/1.1 400 ")
    error = json.loads(too_long.partition(b"\r\n\r\n")[2])["error"]
    assert (error["code"], error["message"]) == ("VALIDATION_ERROR", "this is no HTTP request that can be read")
    assert "a URL of at most 65,535 bytes" in error["details"]["hint"]


def _listing(filters: str) -> bytes:
    path = f"/api/v1/documents?filters={filters}"
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode()


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGHUP])
def test_a_draining_server_is_not_ready(indexed: dict[str, str], sign: signal.Signals) -> None:
    with served({**indexed, "TOOLSCRIPT_DRAIN_SECONDS": "600"}) as server:
        assert server.get("/readyz").status_code == 200
        server.process.send_signal(sign)
        asyncio.run(asyncio.wait_for(asyncio.to_thread(_until_unready, server.get), 60))
        assert server.get("/readyz").json()["parts"]["serving"]["note"] == "shutting down"
        assert server.get("/livez").status_code == 200
        server.process.send_signal(sign)
        assert server.ended() == 0


def _until_unready(get: object) -> None:
    assert callable(get)
    while get("/readyz").status_code != 503:
        pass


def test_a_hangup_ends_it_as_properly_as_a_termination(indexed: dict[str, str]) -> None:
    with served(indexed) as server:
        server.process.send_signal(signal.SIGHUP)
        assert server.ended() == 0


def test_a_port_that_is_taken_is_named_before_anything_is_opened(installation: Installation) -> None:
    with reserved_port() as port:
        listening = subprocess.Popen(
            ["python3", "-m", "http.server", str(port), "--bind", "127.0.0.1"], stderr=subprocess.PIPE
        )
        try:
            assert listening.stderr is not None
            nowhere = {**installation.environment, "TOOLSCRIPT_EMBEDDING_MODEL": "no-such-model"}
            asyncio.run(_until_taken(port))
            done = run(nowhere, "serve", "--port", str(port), code=2)
        finally:
            listening.kill()
            listening.communicate()
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
    assert "choose another `--port`" in done.stderr


async def _until_taken(port: int) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return
