"""A Qdrant that requires a key or a client certificate, and one with a certificate of a private CA."""

import asyncio
import logging
import ssl
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.support.certificates import PrivateCa, Signed
from tests.support.secured_qdrant import engine_folder, secured_qdrant
from toolscript.core.errors import IndexUnavailable, SetupError
from toolscript.core.qdrant.collections import QdrantIndexes
from toolscript.core.qdrant.connection import Tls, open_qdrant
from toolscript.core.qdrant.layout import Layout
from toolscript.core.retrieval.model import IndexCard, IndexQuery, ModelCard, Point

KEY, READING_KEY = "a-key-that-writes", "a-key-that-reads"
CARD = IndexCard(ModelCard("small", "1", 4))
HERE, HERE_SECURED = "http://127.0.0.1", "https://localhost"


@pytest.fixture(scope="module")
def keyed() -> Iterator[int]:
    lines = [f"api_key: {KEY}", f"read_only_api_key: {READING_KEY}"]
    with engine_folder("keyed") as folder, secured_qdrant(folder, lines) as port:
        yield port


@dataclass(frozen=True)
class Secured:
    port: int
    ca: PrivateCa
    own: Signed


@pytest.fixture(scope="module")
def secured() -> Iterator[Secured]:
    with engine_folder("secured") as folder:
        ca = PrivateCa(folder)
        own = ca.sign("server")
        tls = ["tls:", f"  cert: {own.certificate}", f"  key: {own.key}", f"  ca_cert: {ca.file}"]
        with secured_qdrant(folder, ["enable_tls: true", f"api_key: {KEY}"], tls) as port:
            yield Secured(port, ca, own)


@asynccontextmanager
async def requiring_certificates(secured: Secured, target: int) -> AsyncIterator[int]:
    """Require client certificates, as a service mesh does; the engine's own gRPC port requires none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(secured.own.certificate, secured.own.key)
    context.load_verify_locations(secured.ca.file)
    context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols(["h2"])

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def between(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", target)
        await asyncio.gather(pass_on(reader, far_writer), pass_on(far_reader, writer))

    async with await asyncio.start_server(between, "127.0.0.1", 0, ssl=context) as server:
        yield server.sockets[0].getsockname()[1]


async def _write_and_find(port: int, url: str = HERE, api_key: str = KEY, tls: Tls = Tls()) -> list[int]:  # noqa: B008
    async with open_qdrant(url, port, api_key=api_key, tls=tls, timeout_seconds=20) as connected:
        indexes = QdrantIndexes(connected, f"test_{uuid.uuid4().hex[:12]}", Layout())
        await indexes.create(CARD)
        index = await indexes.open(CARD)
        await index.put([Point(1, 1, np.eye(4, dtype=np.float32)[0], {7: 1.0}, {"type": "tool"})])
        candidates = await index.search(IndexQuery(vector=np.ones(4, dtype=np.float32)))
        return [hit.id for hit in candidates.dense or ()]


async def test_the_right_key_reads_and_writes(keyed: int) -> None:
    assert await _write_and_find(keyed) == [1]


@pytest.mark.parametrize("key", ["another-key", "", READING_KEY])
async def test_a_wrong_missing_or_read_only_key_is_rejected_with_the_setting(keyed: int, key: str) -> None:
    with pytest.raises(SetupError) as refused:
        await _write_and_find(keyed, api_key=key)
    assert "TOOLSCRIPT_QDRANT_API_KEY" in refused.value.hint
    assert KEY not in refused.value.message


async def test_a_key_that_only_reads_is_enough_to_read(keyed: int) -> None:
    async with open_qdrant(HERE, keyed, api_key=READING_KEY) as connected:
        assert await QdrantIndexes(connected, "test_nothing", Layout()).live() is None


async def test_a_certificate_of_a_private_ca_is_accepted_if_the_ca_is_configured(secured: Secured) -> None:
    assert await _write_and_find(secured.port, HERE_SECURED, tls=Tls(secured.ca.file)) == [1]


async def test_a_certificate_of_another_ca_is_refused_and_the_setting_is_named(
    secured: Secured, tmp_path: Path
) -> None:
    for ca_file in (PrivateCa(tmp_path).file, ""):
        with pytest.raises(IndexUnavailable) as refused:
            await _write_and_find(secured.port, HERE_SECURED, tls=Tls(ca_file))
        assert "TOOLSCRIPT_QDRANT_CA_FILE" in refused.value.hint


async def test_the_client_certificate_is_sent_to_a_server_that_requires_one(secured: Secured, keyed: int) -> None:
    client = secured.ca.sign("client")
    async with requiring_certificates(secured, keyed) as port:
        with_it = Tls(secured.ca.file, client.certificate, client.key)
        assert await _write_and_find(port, HERE_SECURED, tls=with_it) == [1]
        with pytest.raises(IndexUnavailable):
            await _write_and_find(port, HERE_SECURED, tls=Tls(secured.ca.file))


@pytest.mark.parametrize(
    ("tls", "url", "named"),
    [
        (Tls("nowhere.pem"), HERE_SECURED, "TOOLSCRIPT_QDRANT_CA_FILE"),
        (Tls(__file__), HERE_SECURED, "not a PEM file"),
        (Tls("", "client.pem"), HERE_SECURED, "TOOLSCRIPT_QDRANT_CLIENT_KEY"),
        (Tls("ca.pem"), HERE, "http://"),
    ],
)
async def test_files_that_cannot_be_used_are_refused_before_anything_is_sent(
    tls: Tls, url: str, named: str
) -> None:
    with pytest.raises(SetupError) as refused:
        async with open_qdrant(url, 1, tls=tls):
            pass
    assert named in refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize(
    ("urls", "api_key", "warnings"),
    [
        ("http://qdrant.example, http://other.example", KEY, 1),
        ("http://qdrant.example", "", 0),
        ("https://qdrant.example", KEY, 0),
        ("http://127.0.0.1, http://localhost, http://[::1]", KEY, 0),
    ],
)
async def test_an_unencrypted_key_is_warned_of_once(
    urls: str, api_key: str, warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        async with open_qdrant(urls, 6334, api_key=api_key):
            pass
    messages = [line.getMessage() for line in caplog.records if "unencrypted" in line.getMessage()]
    assert len(messages) == warnings
    assert KEY not in caplog.text
