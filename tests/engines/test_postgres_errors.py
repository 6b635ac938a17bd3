"""Errors of a real PostgreSQL: what they mean, and what they do not tell."""

import psycopg
import pytest

from toolscript.core.errors import CatalogRejected, CatalogUnavailable, SetupError
from toolscript.core.postgres.migrate import downgrade, upgrade
from toolscript.core.postgres.pool import Pool, connection, open_pool
from toolscript.core.postgres.schema import require_current_schema
from toolscript.tools.postgres.catalog import PostgresCatalog

NOWHERE = "postgresql://nobody@127.0.0.1:1/nothing"


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
