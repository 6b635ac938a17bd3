"""Runs the migrations, and tells whether they have been run."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import URL, create_engine, exc, make_url
from sqlalchemy.pool import NullPool

from toolscript.adapters.postgres.pool import MIGRATE_HINT, Pool, connection
from toolscript.errors import CatalogUnavailable, SetupError

_FOLDER = Path(__file__).parent / "migrations"


def upgrade(url: str, revision: str = "head") -> None:
    with _config(url) as config:
        command.upgrade(config, revision)


def downgrade(url: str, revision: str) -> None:
    with _config(url) as config:
        command.downgrade(config, revision)


async def require_current_schema(pool: Pool) -> None:
    """Refuses a database that was not migrated to exactly this version's schema."""
    wanted = ScriptDirectory(str(_FOLDER)).get_current_head()
    async with connection(pool) as conn:
        row = await (await conn.execute("SELECT version_num FROM public.toolscript_schema")).fetchone()
    found = row[0] if row else None
    if found != wanted:
        raise SetupError(f"the database schema is at {found}, this version needs {wanted}", hint=MIGRATE_HINT)


@contextmanager
def _config(url: str) -> Iterator[Config]:
    engine = create_engine(_driver_url(url), poolclass=NullPool)
    config = Config()
    config.set_main_option("script_location", str(_FOLDER))
    try:
        with engine.connect() as conn:
            config.attributes["connection"] = conn
            yield config
            conn.commit()
    except exc.OperationalError as error:
        raise CatalogUnavailable(
            f"PostgreSQL: {str(error.orig).splitlines()[0]}",
            hint="is PostgreSQL running, and is TOOLSCRIPT_POSTGRES_URL right?",
        ) from error
    finally:
        engine.dispose()


def _driver_url(url: str) -> URL:
    return make_url(url).set(drivername="postgresql+psycopg")
