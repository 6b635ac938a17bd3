"""Errors of a real MongoDB: every wait is bounded, and no password is told."""

import asyncio
import time
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from tests.contracts.library_builders import MINUTE, RUN, a_chunk, a_source
from tests.engines.mongo.conftest import Place
from tests.support.faults import Fault, relay
from toolscript.core.breaker import Patience
from toolscript.core.errors import LibraryRejected, LibraryUnavailable, SetupError
from toolscript.knowledge.mongo.connection import open_mongo
from toolscript.knowledge.mongo.library import MongoLibraryReader, MongoLibraryWriter

pytestmark = pytest.mark.requirement("KN-001")

NOWHERE = "mongodb://127.0.0.1:1"
SHORT = 0.3


async def test_a_server_that_is_not_there_is_unavailable_and_the_next_does_not_wait_for_it() -> None:
    async with open_mongo(NOWHERE, "library", connect_seconds=SHORT, patience=Patience()) as library:
        reader = MongoLibraryReader(library)
        with pytest.raises(LibraryUnavailable) as first:
            await reader.ready()
        while not library.breaker.is_open:  # noqa: ASYNC110 - a breaker has no event
            await asyncio.sleep(0.01)
        before = time.monotonic()
        with pytest.raises(LibraryUnavailable, match="does not answer") as second:
            await reader.chunks([a_chunk(0).id])
        assert time.monotonic() - before < SHORT / 2
    assert "TOOLSCRIPT_MONGO_URL" in first.value.hint
    assert second.value.details["retry_after_seconds"] == 1
    assert len(first.value.message) < 400


@pytest.mark.parametrize("fault", [Fault.HANGING, Fault.WRONG, Fault.HALF_THEN_CUT])
async def test_a_server_that_answers_nonsense_or_nothing_times_out(place: Place, fault: Fault) -> None:
    address = urlsplit(place.writer_url)
    async with relay("127.0.0.1", address.port or 0) as between:
        # Directly: a member of a replica set announces its address, and the driver would connect to that.
        url = place.writer_url.replace(f":{address.port}", f":{between.port}")
        url += f"{'&' if '?' in url else '/?'}directConnection=true"
        async with open_mongo(url, place.database, connect_seconds=1, answer_seconds=1) as library:
            reader = MongoLibraryReader(library)
            assert await reader.chunks([a_chunk(0).id]) == {}
            await between.fail(fault)
            async with asyncio.timeout(10):
                with pytest.raises((LibraryUnavailable, LibraryRejected)):
                    await reader.chunks([a_chunk(0).id])
            await between.heal()
            async with asyncio.timeout(10):
                await _answers_again(reader)


async def _answers_again(reader: MongoLibraryReader) -> None:
    while True:
        try:
            assert await reader.chunks([a_chunk(0).id]) == {}
            return
        except LibraryUnavailable:
            await asyncio.sleep(0.05)


async def test_a_wrong_password_is_a_setup_error(place: Place) -> None:
    address = urlsplit(place.writer_url)
    url = f"mongodb://toolscript_writer:hunter2@127.0.0.1:{address.port}/?authSource=admin"
    async with open_mongo(url, place.database) as library:
        with pytest.raises(SetupError) as refused:
            await MongoLibraryReader(library).ready()
    assert "password" in refused.value.hint
    assert "hunter2" not in str(refused.value) + refused.value.hint


@pytest.mark.parametrize(
    "url", ["mongodb://u:hunter2:x@h", "mongo://u:hunter2@h", "mongodb://u:hunter2@h:port", "hunter2", ""]
)
async def test_an_address_that_cannot_be_read_is_refused_without_being_quoted(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(SetupError) as refused:
        async with open_mongo(url, "library"):
            pass
    assert "mongodb://user:password@host" in refused.value.hint
    assert "hunter2" not in str(refused.value) + refused.value.hint + caplog.text


@pytest.mark.parametrize("content", ["\ud800", "x" * (17 << 20)], ids=["half a character", "17 MB"])
async def test_values_that_no_document_can_hold_are_rejected(place: Place, content: str) -> None:
    async with open_mongo(place.writer_url, place.database) as library:
        writer = MongoLibraryWriter(library)
        with pytest.raises(LibraryRejected):
            await writer.put_chunks([a_chunk(0), replace(a_chunk(1), content=content)])
        assert await writer.claim(a_source(), RUN, MINUTE)
