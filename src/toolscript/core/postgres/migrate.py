"""The migrations there are, and which of them a database has had."""

from functools import partial
from pathlib import Path

import psycopg
from alembic.script import ScriptDirectory

from toolscript.adapters.postgres.pool import require_readable, translated
from toolscript.adapters.postgres.schema import (
    FIND_OLDEST_CODE,
    FIND_REVISION,
    REVISION,
    is_newer,
    require_usable,
)
from toolscript.errors import InvalidRequest, SetupError
from toolscript.model.schema_status import Revision, SchemaStatus

FOLDER = Path(__file__).parent / "migrations"
NOTHING = "base"
LIST_HINT = "`toolscript migrate --show` lists the revisions"
CONNECT_SECONDS = 5


def known_revisions(folder: Path = FOLDER) -> list[Revision]:
    """The oldest first."""
    scripts = list(ScriptDirectory(str(folder)).walk_revisions())
    titles = [str(one.doc).splitlines()[0].rstrip(".") for one in scripts]
    found = [
        Revision(one.revision, title, one.module.oldest_code) for one, title in zip(scripts, titles, strict=True)
    ]
    return found[::-1]


def schema_status(url: str) -> SchemaStatus:
    current, oldest = _stored(url)
    status = SchemaStatus(current, REVISION, oldest, known_revisions())
    try:
        require_usable(current, oldest)
    except SetupError as error:
        return SchemaStatus(current, REVISION, oldest, status.revisions, error.message, error.hint)
    return status


def require_way_down(status: SchemaStatus, revision: str) -> None:
    """Refuses what nobody can go back to from here."""
    if revision != NOTHING and revision not in {one.id for one in status.revisions}:
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
    # Nothing of a session, as in pool.py.
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
