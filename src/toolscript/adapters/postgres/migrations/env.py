"""Alembic's entry point: migrates over the connection it is handed."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table="toolscript_schema",
    version_table_schema="public",
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
