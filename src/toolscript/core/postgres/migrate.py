"""Migrations of the schema: list, status, upgrade and downgrade."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psycopg
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import URL, create_engine, exc, make_url
from sqlalchemy.pool import NullPool

from toolscript.core.errors import CatalogRejected, CatalogUnavailable, InvalidRequest, SetupError
from toolscript.core.postgres.pool import DOWN_HINT, require_readable, translated
from toolscript.core.postgres.schema import (
    BASELINE,
    FIND_OLDEST_CODE,
    FIND_REVISION,
    REVISION,
    is_newer,
    require_usable,
)
from toolscript.core.values import Revision, SchemaStatus

NOTHING = "base"
LIST_HINT = "`toolscript migrate --show` lists the revisions"
CONNECT_SECONDS = 5


FOLDER = Path(__file__).parent / "migrations"


def known_revisions(folder: Path = FOLDER) -> list[Revision]:
    """Return all revisions, oldest first."""
    scripts = list(ScriptDirectory(str(folder)).walk_revisions())
    titles = [str(script.doc).splitlines()[0].rstrip(".") for script in scripts]
    revisions = [
        Revision(script.revision, title, script.module.oldest_code)
        for script, title in zip(scripts, titles, strict=True)
    ]
    return revisions[::-1]


def schema_status(url: str) -> SchemaStatus:
    current, oldest = _stored(url)
    status = SchemaStatus(current, REVISION, oldest, known_revisions())
    try:
        require_usable(current, oldest)
    except SetupError as error:
        return SchemaStatus(current, REVISION, oldest, status.revisions, error.message, error.hint)
    return status


def require_downgradable(status: SchemaStatus, revision: str) -> None:
    """Raise an error if the schema cannot be downgraded to the revision."""
    if revision != NOTHING and revision not in {entry.id for entry in status.revisions}:
        raise InvalidRequest(f"there is no revision {revision[:80]!r}", hint=LIST_HINT)
    if status.is_newer:
        raise SetupError(
            f"the database schema is at {status.current}, which this version of toolscript cannot undo",
            hint=f"run `toolscript migrate --down-to {revision}` of the version that migrated it",
        )
    if revision != NOTHING and (status.current is None or revision > status.current):
        raise InvalidRequest(
            f"the database schema is at {status.current or NOTHING}, which is before {revision}",
            hint="`toolscript migrate` without --down-to brings it up",
        )


def _stored(url: str) -> tuple[str | None, str | None]:
    require_readable(url)
    # No session state, as in pool.py.
    connected = partial(psycopg.connect, autocommit=True, prepare_threshold=None, connect_timeout=CONNECT_SECONDS)
    with translated(), connected(url) as conn:
        if not _has(conn, "public.toolscript_schema"):
            return None, None
        row = conn.execute(FIND_REVISION).fetchone()
        current = None if row is None else str(row[0])
        if not is_newer(current) and not _has(conn, "mcp.schema_compatibility"):
            return current, None
        row = conn.execute(FIND_OLDEST_CODE).fetchone()
    return current, None if row is None else str(row[0])


def _has(conn: psycopg.Connection, table: str) -> bool:
    return conn.execute("SELECT to_regclass(%s)", (table,)).fetchone() != (None,)


def upgrade(url: str, revision: str = "head", *, folder: Path = FOLDER) -> SchemaStatus:
    """Upgrade the schema and return its status. A later, compatible schema stays unchanged."""
    status = schema_status(url)
    if status.current is not None and status.current < BASELINE:
        raise SetupError(status.problem, hint=status.hint)
    if status.is_newer and folder == FOLDER:
        if status.problem:
            raise SetupError(status.problem, hint=status.hint)
        return status
    with _config(url, folder) as config:
        command.upgrade(config, revision)
    return schema_status(url)


def downgrade(url: str, revision: str) -> SchemaStatus:
    require_downgradable(schema_status(url), revision)
    with _config(url, FOLDER) as config:
        command.downgrade(config, revision)
    return schema_status(url)


@contextmanager
def _config(url: str, folder: Path) -> Iterator[Config]:
    require_readable(url)
    # No session state, as in pool.py: behind PgBouncer each transaction may run in another session.
    engine = create_engine(_driver_url(url), poolclass=NullPool, connect_args={"prepare_threshold": None})
    config = Config()
    config.set_main_option("script_location", str(folder))
    try:
        # One transaction: a killed process leaves the schema unchanged and releases the lock.
        with engine.begin() as conn:
            # The lock serializes concurrent migrations; it ends with the transaction.
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
