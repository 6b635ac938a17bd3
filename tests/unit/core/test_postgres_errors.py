"""Every error of the PostgreSQL driver is translated, by what can be done about it."""

import psycopg
import pytest
from psycopg import errors
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from toolscript.core.errors import CatalogRejected, CatalogUnavailable, SetupError, ToolscriptError
from toolscript.core.postgres.pool import translated

OURS = (SetupError, CatalogUnavailable, CatalogRejected)
MEANINGS: list[tuple[type[Exception], type[ToolscriptError]]] = [
    (errors.UndefinedTable, SetupError),
    (errors.UndefinedColumn, SetupError),
    (errors.InvalidSchemaName, SetupError),
    (errors.QueryCanceled, CatalogUnavailable),
    (errors.DeadlockDetected, CatalogUnavailable),
    (errors.SerializationFailure, CatalogUnavailable),
    (errors.AdminShutdown, CatalogUnavailable),
    (errors.CannotConnectNow, CatalogUnavailable),
    (errors.TooManyConnections, CatalogUnavailable),
    (errors.ReadOnlySqlTransaction, CatalogUnavailable),
    (errors.IdleInTransactionSessionTimeout, CatalogUnavailable),
    (errors.DiskFull, CatalogUnavailable),
    (errors.ConnectionTimeout, CatalogUnavailable),
    (psycopg.OperationalError, CatalogUnavailable),
    (psycopg.InterfaceError, CatalogUnavailable),
    (PoolTimeout, CatalogUnavailable),
    (PoolClosed, CatalogUnavailable),
    (TooManyRequests, CatalogUnavailable),
    (ConnectionResetError, CatalogUnavailable),
    (TimeoutError, CatalogUnavailable),
    (errors.UniqueViolation, CatalogRejected),
    (errors.CharacterNotInRepertoire, CatalogRejected),
    (errors.InvalidTextRepresentation, CatalogRejected),
    (errors.ProgramLimitExceeded, CatalogRejected),
    (errors.SyntaxError, CatalogRejected),
]


def subclasses(of: type[psycopg.Error]) -> set[type[psycopg.Error]]:
    return {of}.union(*(subclasses(kind) for kind in of.__subclasses__()))


def test_every_error_of_the_driver_is_translated(subtests: pytest.Subtests) -> None:
    kinds = subclasses(psycopg.Error)
    assert len(kinds) > 200
    for kind in kinds:
        with subtests.test(kind=kind), pytest.raises(OURS, match="PostgreSQL: "), translated():
            raise kind


def test_transient_setup_and_permanent_errors_are_distinguished(subtests: pytest.Subtests) -> None:
    for kind, meaning in MEANINGS:
        with subtests.test(kind=kind):
            with pytest.raises(ToolscriptError) as raised, translated():
                raise kind("first line\nsecond line")
            assert type(raised.value) is meaning
            assert raised.value.message == "PostgreSQL: first line"
            assert raised.value.hint or meaning is CatalogRejected


def test_errors_of_other_origin_are_not_translated() -> None:
    with pytest.raises(KeyError), translated():
        raise KeyError
