"""Every error of the MongoDB driver is translated, by what can be done about it."""

import pytest
from bson.errors import BSONError, InvalidBSON, InvalidDocument, InvalidStringData
from pymongo import errors
from pymongo.errors import OperationFailure, PyMongoError

from toolscript.core.errors import LibraryRejected, LibraryUnavailable, SetupError, ToolscriptError
from toolscript.knowledge.mongo.connection import BY_CODE, translated

pytestmark = pytest.mark.requirement("KN-001")

OURS = (SetupError, LibraryUnavailable, LibraryRejected)
MEANINGS: list[tuple[Exception, type[ToolscriptError]]] = [
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
]


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


def test_every_error_of_the_driver_is_translated(subtests: pytest.Subtests) -> None:
    for kind in subclasses(PyMongoError) | subclasses(BSONError):
        with subtests.test(kind=kind):
            with pytest.raises(OURS, match="MongoDB: ") as raised, translated():
                raise made(kind)
            assert isinstance(raised.value.__cause__, kind)


def test_transient_setup_and_permanent_errors_are_distinguished(subtests: pytest.Subtests) -> None:
    for error, meaning in MEANINGS:
        with subtests.test(error=error):
            with pytest.raises(ToolscriptError) as raised, translated():
                raise error
            assert type(raised.value) is meaning
            assert raised.value.message == "MongoDB: first line"
            assert raised.value.hint or meaning is LibraryRejected


def test_the_first_rejected_write_of_a_batch_is_the_reason(subtests: pytest.Subtests) -> None:
    for code, (kind, hint) in BY_CODE.items():
        with subtests.test(code=code):
            refused = errors.BulkWriteError(
                {"writeErrors": [{"code": code}, {"code": 9}], "writeConcernErrors": []}
            )
            with pytest.raises(ToolscriptError) as raised, translated():
                raise refused
            assert (type(raised.value), raised.value.hint) == (kind, hint)


def test_errors_of_other_origin_are_not_translated() -> None:
    with pytest.raises(KeyError), translated():
        raise KeyError
