"""Runs the migrations. Loaded by the one command that needs it: its tools take a second to load."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import URL, create_engine, exc, make_url
from sqlalchemy.pool import NullPool

from toolscript.adapters.postgres.pool import DOWN_HINT, require_readable
from toolscript.adapters.postgres.revisions import FOLDER, LIST_HINT, require_way_down, schema_status
from toolscript.errors import CatalogRejected, CatalogUnavailable, SetupError
from toolscript.model.schema_status import SchemaStatus


def upgrade(url: str, revision: str = "head", *, folder: Path = FOLDER) -> SchemaStatus:
    """How the schema is then. One that a later version has migrated and that serves this one stays as it is."""
    status = schema_status(url)
    if status.is_newer and folder == FOLDER:
        if status.problem:
            raise SetupError(status.problem, hint=status.hint)
        return status
    with _config(url, folder) as config:
        command.upgrade(config, revision)
    return schema_status(url)


def downgrade(url: str, revision: str) -> SchemaStatus:
    require_way_down(schema_status(url), revision)
    with _config(url, FOLDER) as config:
        command.downgrade(config, revision)
    return schema_status(url)


@contextmanager
def _config(url: str, folder: Path) -> Iterator[Config]:
    require_readable(url)
    # Nothing of a session, as in pool.py: behind PgBouncer each transaction may have another one.
    engine = create_engine(_driver_url(url), poolclass=NullPool, connect_args={"prepare_threshold": None})
    config = Config()
    config.set_main_option("script_location", str(folder))
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
    except exc.DBAPIError as error:
        raise CatalogRejected(
            f"PostgreSQL: {str(error.orig).splitlines()[0]}",
            hint="migrations need a user that owns the schema",
        ) from error
    except CommandError as error:
        raise SetupError(f"the schema cannot be migrated: {str(error).splitlines()[0]}", hint=LIST_HINT) from error
    finally:
        engine.dispose()


def _driver_url(url: str) -> URL:
    return make_url(url).set(drivername="postgresql+psycopg")
