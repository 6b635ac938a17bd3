"""The connections to MongoDB, and the one place where the driver's errors become ours."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

from bson.errors import BSONError
from pymongo import AsyncMongoClient
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.errors import (
    BulkWriteError,
    ConfigurationError,
    ConnectionFailure,
    ExecutionTimeout,
    InvalidName,
    OperationFailure,
    PyMongoError,
    WTimeoutError,
)
from pymongo.monitoring import CommandListener
from pymongo.uri_parser import parse_uri

from toolscript.core.breaker import OF_COMMANDS, Breaker, Engine, Patience
from toolscript.core.errors import LibraryRejected, LibraryUnavailable, SetupError, ToolscriptError

Document = dict[str, Any]
Collection = AsyncCollection[Document]

CONNECT_SECONDS, ANSWER_SECONDS = 2.0, 10.0
CONNECTIONS = 32
SERVER_SHARE = 0.8
LAST_ATTEMPT_SECONDS = 0.1
MAX_MESSAGE = 300

URL_HINT = "write it like mongodb://user:password@host:27017, with special characters as %XX"
_DOWN = "is MongoDB running, and is TOOLSCRIPT_MONGO_URL (for `ingest` TOOLSCRIPT_MONGO_WRITER_URL) right?"
_LOGIN = (
    "are user and password in TOOLSCRIPT_MONGO_URL (for `ingest` in TOOLSCRIPT_MONGO_WRITER_URL) right, and does "
    "authSource name the database the user was made in?"
)
_ROLE = (
    "`serve` needs a user with the role `read` on the library's database, `ingest` one with the role `readWrite`, "
    "in TOOLSCRIPT_MONGO_WRITER_URL"
)

Meaning = tuple[type[ToolscriptError], str]
_TRY_AGAIN: Meaning = (LibraryUnavailable, "try again")

# By the server's error code. See error_codes.yml in MongoDB's sources.
BY_CODE: Mapping[int, Meaning] = {
    11: (SetupError, _LOGIN),  # UserNotFound
    13: (SetupError, _ROLE),  # Unauthorized
    18: (SetupError, _LOGIN),  # AuthenticationFailed
    8000: (SetupError, _LOGIN),  # AtlasError, of which nearly all are refused logins
    **dict.fromkeys(
        (
            6,  # HostUnreachable
            7,  # HostNotFound
            24,  # LockTimeout
            43,  # CursorNotFound
            50,  # MaxTimeMSExpired
            64,  # WriteConcernTimeout
            89,  # NetworkTimeout
            91,  # ShutdownInProgress
            112,  # WriteConflict
            134,  # ReadConcernMajorityNotAvailableYet
            189,  # PrimarySteppedDown
            202,  # NetworkInterfaceExceededTimeLimit
            262,  # ExceededTimeLimit
            9001,  # SocketException
            10107,  # NotWritablePrimary
            # Two writers stored the same document at once: a retry finds it there.
            11000,  # DuplicateKey
            11600,  # InterruptedAtShutdown
            11601,  # Interrupted
            11602,  # InterruptedDueToReplStateChange
            13435,  # NotPrimaryNoSecondaryOk
            13436,  # NotPrimaryOrSecondary
        ),
        _TRY_AGAIN,
    ),
    14031: (LibraryUnavailable, "MongoDB has no room left on its disk"),  # OutOfDiskSpace
}

# First match wins, where the code is not in the table.
BY_CLASS: tuple[tuple[tuple[type[Exception], ...], Meaning], ...] = (
    ((ExecutionTimeout, WTimeoutError), _TRY_AGAIN),
    ((ConnectionFailure, OSError), (LibraryUnavailable, _DOWN)),
    ((ConfigurationError, InvalidName), (SetupError, URL_HINT)),
    # Values that no document can hold fail when they are encoded, some in Python itself.
    ((PyMongoError, BSONError, OverflowError, UnicodeError, RecursionError), (LibraryRejected, "")),
)


class MongoLibrary:
    """The three collections of a library."""

    def __init__(
        self, client: AsyncMongoClient[Document], database: str, patience: Patience = OF_COMMANDS
    ) -> None:
        # The server abandons a query shortly before the driver times out: the driver would take the timeout for a
        # lost connection and retry.
        timeout = client.options.pool_options.socket_timeout or ANSWER_SECONDS
        self.max_ms = int(timeout * SERVER_SHARE * 1000)
        self._database = client[database]
        self.sources: Collection = self._database["sources"]
        self.chunks: Collection = self._database["chunks"]
        self.extractions: Collection = self._database["extractions"]
        self.breaker = Breaker(Engine("MongoDB", LibraryUnavailable, self._ping, _is_down), patience)
        self.was_down = False

    async def ping(self) -> None:
        async with self.request():
            await self._database.command("ping")

    @asynccontextmanager
    async def request(self) -> AsyncIterator[None]:
        """Raise at once while the server does not answer."""
        with translated():
            try:
                with self.breaker.call() as call:
                    async with call.cancelled():
                        yield
            except (ConnectionFailure, LibraryUnavailable):
                self.was_down = True
                raise

    async def _ping(self) -> None:
        """A refused login is an answer."""
        with translated(), suppress(OperationFailure):
            await self._database.command("ping")


def _is_down(error: BaseException) -> bool:
    return isinstance(error, ConnectionFailure | OSError)


@asynccontextmanager
async def open_mongo(
    url: str,
    database: str,
    *,
    connect_seconds: float = CONNECT_SECONDS,
    answer_seconds: float = ANSWER_SECONDS,
    listeners: Sequence[CommandListener] = (),
    patience: Patience = OF_COMMANDS,
) -> AsyncIterator[MongoLibrary]:
    """Open a library; it connects on first use. Refuse an invalid URL. Options in the URL take precedence."""
    options = _options(url, connect_seconds, answer_seconds)
    with translated():
        client: AsyncMongoClient[Document] = AsyncMongoClient(url, event_listeners=list(listeners), **options)
    async with client:
        library = MongoLibrary(client, database, patience)
        try:
            with library.breaker.opened():
                yield library
        finally:
            if library.was_down:
                # The driver leaks the socket of an attempt that is cut off; most attempts end at once anyway.
                await asyncio.sleep(LAST_ATTEMPT_SECONDS)


@contextmanager
def translated() -> Iterator[None]:
    try:
        yield
    except (PyMongoError, BSONError, OSError, OverflowError, UnicodeError, RecursionError) as error:
        meaning, hint = _meaning(error)
        raise meaning(f"MongoDB: {_short_message(error)}", hint=hint) from error


def _options(url: str, connect_seconds: float, answer_seconds: float) -> Document:
    defaults: Document = {
        "appName": "toolscript",
        "maxPoolSize": CONNECTIONS,
        "serverSelectionTimeoutMS": int(connect_seconds * 1000),
        "connectTimeoutMS": int(connect_seconds * 1000),
        "waitQueueTimeoutMS": int(connect_seconds * 1000),
        # Not timeoutMS: with that the driver retries a server that is down until the whole timeout is over.
        "socketTimeoutMS": int(answer_seconds * 1000),
        # One connection less to each server; a request notices by itself when a server is gone.
        "serverMonitoringMode": "poll",
        # A replica that lags a moment is better than no response.
        "readPreference": "primaryPreferred",
        "w": "majority",
    }
    in_url = {name.lower() for name in _read(url)}
    return {name: value for name, value in defaults.items() if name.lower() not in in_url}


def _read(url: str) -> Mapping[str, object]:
    try:
        options: Mapping[str, object] = parse_uri(url, validate=True, warn=False)["options"]
    except (PyMongoError, ValueError):
        # The driver's own message can quote the address, password and all.
        raise SetupError("the address of MongoDB cannot be read", hint=URL_HINT) from None
    return options


def _meaning(error: Exception) -> Meaning:
    if (code := _code(error)) in BY_CODE:
        return BY_CODE[code]
    return next(meaning for causes, meaning in BY_CLASS if isinstance(error, causes))


def _code(error: Exception) -> int:
    """Return the error code; of a bulk write, that of the first refused document."""
    if isinstance(error, BulkWriteError):
        errors = [*error.details.get("writeErrors", []), *error.details.get("writeConcernErrors", [])]
        return int(errors[0].get("code", 0)) if errors else 0
    return error.code or 0 if isinstance(error, OperationFailure) else 0


def _short_message(error: Exception) -> str:
    """Return the message without the topology and the full response that the driver adds; the cause keeps them."""
    text = str(error) or type(error).__name__
    for rest in (", full error:", ", Timeout:", " (configured timeouts:"):
        text = text.partition(rest)[0]
    return text.splitlines()[0][:MAX_MESSAGE]
