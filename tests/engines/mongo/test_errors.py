"""Every error of the driver is translated, and every wait is bounded."""

import asyncio
import time
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from bson.errors import BSONError, InvalidBSON, InvalidDocument, InvalidStringData
from pymongo import errors
from pymongo.errors import OperationFailure, PyMongoError

from tests.contracts.library_builders import MINUTE, RUN, a_chunk, a_source
from tests.engines.mongo.conftest import Place
from tests.support.faults import Fault, relay
from toolscript.core.errors import LibraryRejected, LibraryUnavailable, SetupError, ToolscriptError
from toolscript.knowledge.mongo.connection import BY_CODE, open_mongo, translated
from toolscript.knowledge.mongo.library import MongoLibraryReader, MongoLibraryWriter

pytestmark = pytest.mark.requirement("KN-001")

NOWHERE = "mongodb://127.0.0.1:1"
OURS = (SetupError, LibraryUnavailable, LibraryRejected)
SHORT = 0.3


def subclasses(of: type[Exception]) -> set[type[Exception]]:
    return {of}.union(*(subclasses(kind) for kind in of.__subclasses__()))


def made(kind: type[Exception]) -> Exception:
    """Create an error as the driver does; some need more than a message."""
    if issubclass(kind, errors.BulkWriteError):
        return kind({"writeErrors": [{"code": 1, "errmsg": "refused"}]})
    if issubclass(kind, errors.ClientBulkWriteException):
        return kind({}, False)
    if issubclass(kind, errors.EncryptedCollectionError):
        return kind(ValueError("first line"), {})
    if issubclass(kind, errors.EncryptionError):
        return kind(ValueError("first line"))
    return kind("first line\nsecond line")


@pytest.mark.parametrize("kind", sorted(subclasses(PyMongoError) | subclasses(BSONError), key=str))
def test_every_error_of_the_driver_is_translated(kind: type[Exception]) -> None:
    with pytest.raises(OURS, match="MongoDB: ") as raised, translated():
        raise made(kind)
    assert isinstance(raised.value.__cause__, kind)


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (errors.ServerSelectionTimeoutError("first line"), LibraryUnavailable),
        (errors.NetworkTimeout("first line"), LibraryUnavailable),
        (errors.AutoReconnect("first line"), LibraryUnavailable),
        (errors.NotPrimaryError("first line"), LibraryUnavailable),
        (errors.WaitQueueTimeoutError("first line"), LibraryUnavailable),
        (errors.ExecutionTimeout("first line", 50), LibraryUnavailable),
        (errors.WTimeoutError("first line"), LibraryUnavailable),
        (errors.CursorNotFound("first line", 43), LibraryUnavailable),
        (errors.DuplicateKeyError("first line", 11000), LibraryUnavailable),
        (OperationFailure("first line", 11600), LibraryUnavailable),
        (OperationFailure("first line", 14031), LibraryUnavailable),
        (ConnectionResetError("first line"), LibraryUnavailable),
        (OperationFailure("first line", 18), SetupError),
        (OperationFailure("first line", 13), SetupError),
        (errors.ConfigurationError("first line"), SetupError),
        (errors.InvalidURI("first line"), SetupError),
        (OperationFailure("first line", 9), LibraryRejected),
        (OperationFailure("first line"), LibraryRejected),
        (errors.DocumentTooLarge("first line"), LibraryRejected),
        (errors.InvalidOperation("first line"), LibraryRejected),
        (errors.ProtocolError("first line"), LibraryRejected),
        (InvalidDocument("first line"), LibraryRejected),
        (InvalidStringData("first line"), LibraryRejected),
        (InvalidBSON("first line"), LibraryRejected),
        (OverflowError("first line"), LibraryRejected),
    ],
)
def test_transient_setup_and_permanent_errors_are_distinguished(
    error: Exception, meaning: type[ToolscriptError]
) -> None:
    with pytest.raises(ToolscriptError) as raised, translated():
        raise error
    assert type(raised.value) is meaning
    assert raised.value.message == "MongoDB: first line"
    assert raised.value.hint or meaning is LibraryRejected


@pytest.mark.parametrize("code", BY_CODE)
def test_the_first_rejected_write_of_a_batch_is_the_reason(code: int) -> None:
    refused = errors.BulkWriteError({"writeErrors": [{"code": code}, {"code": 9}], "writeConcernErrors": []})
    with pytest.raises(ToolscriptError) as raised, translated():
        raise refused
    assert (type(raised.value), raised.value.hint) == BY_CODE[code]


def test_errors_of_other_origin_are_not_translated() -> None:
    with pytest.raises(KeyError), translated():
        raise KeyError


async def test_a_server_that_is_not_there_is_unavailable_and_the_next_does_not_wait_for_it() -> None:
    async with open_mongo(NOWHERE, "library", connect_seconds=SHORT) as library:
        reader = MongoLibraryReader(library)
        with pytest.raises(LibraryUnavailable) as first:
            await reader.ready()
        before = time.monotonic()
        with pytest.raises(LibraryUnavailable, match="a moment ago") as second:
            await reader.chunks([a_chunk(0).id])
        assert time.monotonic() - before < SHORT
    assert "TOOLSCRIPT_MONGO_URL" in first.value.hint == second.value.hint
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
