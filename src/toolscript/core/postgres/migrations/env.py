"""Alembic's entry point: migrates over the connection it is handed, within its transaction (see migrate.py)."""

from alembic import context
from alembic.runtime.migration import MigrationContext, MigrationInfo
from alembic.script import Script
from sqlalchemy import text

_SET_OLDEST = text("""
INSERT INTO mcp.schema_compatibility (oldest_code) VALUES (:oldest)
ON CONFLICT (only_row) DO UPDATE SET oldest_code = excluded.oldest_code
""")


def set_oldest_code(ctx: MigrationContext, step: MigrationInfo, *_: object, **__: object) -> None:
    """Record, in the migration's transaction, the oldest code that the schema supports."""
    conn = ctx.connection
    if conn is None or conn.scalar(text("SELECT to_regclass('mcp.schema_compatibility')")) is None:
        return
    for revision in step.destination_revisions:
        if isinstance(revision, Script):
            conn.execute(_SET_OLDEST, {"oldest": revision.module.oldest_code})


context.configure(
    connection=context.config.attributes["connection"],
    version_table="toolscript_schema",
    version_table_schema="public",
    on_version_apply=set_oldest_code,
)
with context.begin_transaction():
    context.run_migrations()
