"""Runs the migrations. Loaded by the one command that needs it: its tools take a second to load."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import URL, create_engine, exc, make_url
from sqlalchemy.pool import NullPool

from toolscript.adapters.postgres.pool import DOWN_HINT, require_readable
from toolscript.errors import CatalogUnavailable

_FOLDER = Path(__file__).parent / "migrations"


def upgrade(url: str, revision: str = "head") -> None:
    with _config(url) as config:
        command.upgrade(config, revision)


def downgrade(url: str, revision: str) -> None:
    with _config(url) as config:
        command.downgrade(config, revision)


@contextmanager
def _config(url: str) -> Iterator[Config]:
    require_readable(url)
    # Nothing of a session, as in pool.py: behind PgBouncer each transaction may have another one.
    engine = create_engine(_driver_url(url), poolclass=NullPool, connect_args={"prepare_threshold": None})
    config = Config()
    config.set_main_option("script_location", str(_FOLDER))
    try:
        # One transaction for all of it: whoever is killed leaves the schema as it was, and the next one is let in.
        with engine.begin() as conn:
            # Two processes that migrate at once take turns; the lock ends with the transaction.
            conn.exec_driver_sql("SELECT pg_advisory_xact_lock(7406001)")
            config.attributes["connection"] = conn
            yield config
    except exc.OperationalError as error:
        raise CatalogUnavailable(
            f"PostgreSQL: {str(error.orig).splitlines()[0]}",
            hint=DOWN_HINT,
        ) from error
    finally:
        engine.dispose()


def _driver_url(url: str) -> URL:
    return make_url(url).set(drivername="postgresql+psycopg")
