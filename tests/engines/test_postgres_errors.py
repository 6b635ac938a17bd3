"""Every error of the driver is translated."""

import psycopg
import pytest
from psycopg import errors
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from toolscript.core.errors import CatalogRejected, CatalogUnavailable, SetupError, ToolscriptError
from toolscript.core.postgres.migrate import downgrade, upgrade
from toolscript.core.postgres.pool import Pool, connection, open_pool, translated
from toolscript.core.postgres.schema import require_current_schema
from toolscript.tools.postgres.catalog import PostgresCatalog

NOWHERE = "postgresql://nobody@127.0.0.1:1/nothing"


def subclasses(of: type[psycopg.Error]) -> set[type[psycopg.Error]]:
    return {of}.union(*(subclasses(kind) for kind in of.__subclasses__()))


@pytest.mark.parametrize("kind", sorted(subclasses(psycopg.Error), key=str))
def test_every_error_of_the_driver_is_translated(kind: type[psycopg.Error]) -> None:
    with pytest.raises((SetupError, CatalogUnavailable, CatalogRejected), match="PostgreSQL: "), translated():
        raise kind


@pytest.mark.parametrize(
    ("kind", "meaning"),
    [
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
    ],
)
def test_transient_setup_and_permanent_errors_are_distinguished(
    kind: type[Exception], meaning: type[ToolscriptError]
) -> None:
    with pytest.raises(ToolscriptError) as raised, translated():
        raise kind("first line\nsecond line")
    assert type(raised.value) is meaning
    assert raised.value.message == "PostgreSQL: first line"
    assert raised.value.hint or meaning is CatalogRejected


def test_errors_of_other_origin_are_not_translated() -> None:
    with pytest.raises(KeyError), translated():
        raise KeyError


async def test_a_database_that_is_not_there_is_unavailable() -> None:
    async with open_pool(NOWHERE, size=1, wait_seconds=0.2) as pool:
        with pytest.raises(CatalogUnavailable) as raised:
            await PostgresCatalog(pool).count()
    assert "TOOLSCRIPT_POSTGRES_URL" in raised.value.hint


def test_migrating_a_database_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(CatalogUnavailable):
        upgrade(NOWHERE)


async def test_a_connection_that_saw_an_error_is_good_for_the_next(pool: Pool) -> None:
    for _ in range(6):
        with pytest.raises(CatalogRejected):
            async with connection(pool) as conn:
                await conn.execute("SELECT 1 / 0")
    assert await PostgresCatalog(pool).count() == 0


async def test_an_unmigrated_database_hints_how_to_migrate(postgres_url: str, pool: Pool) -> None:
    downgrade(postgres_url, "base")
    for ask in (PostgresCatalog(pool).count(), require_current_schema(pool)):
        with pytest.raises(SetupError) as raised:
            await ask
        assert "toolscript migrate" in raised.value.hint


@pytest.mark.parametrize("url", ["postgresql://u:hunter2%zz@h/d", "postgers://u:hunter2@h/d"])
async def test_an_address_that_cannot_be_read_is_refused_without_being_quoted(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(SetupError) as refused:
        async with open_pool(url, size=1):
            pass
    with pytest.raises(SetupError):
        upgrade(url)
    assert "hunter2" not in str(refused.value) + refused.value.hint + caplog.text


async def test_the_reason_of_a_failed_connection_is_also_in_later_errors(postgres_url: str) -> None:
    """The password changes while the service runs."""
    elsewhere = postgres_url.rpartition("/")[0] + "/not_there"
    async with open_pool(elsewhere, size=1, wait_seconds=0.5) as pool:
        with pytest.raises(CatalogUnavailable, match="not_there"):
            await PostgresCatalog(pool).count()


async def test_a_missing_privilege_is_a_setup_error_that_names_its_table_only_in_the_log(
    postgres_url: str, pool: Pool, caplog: pytest.LogCaptureFixture
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute("REVOKE ALL ON mcp.items FROM CURRENT_USER")
    with pytest.raises(SetupError) as raised:
        await PostgresCatalog(pool).count()
    assert "items" not in raised.value.message + raised.value.hint
    assert "grant" in raised.value.hint
    assert any("permission denied for table items" in str(vars(record).get("reason")) for record in caplog.records)
