"""Alembic's entry point: migrates over the connection it is handed, within its transaction (see migrate.py)."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table="toolscript_schema",
    version_table_schema="public",
)
with context.begin_transaction():
    context.run_migrations()
