"""Copies our own tables out of a database and into another one, with COPY and in one snapshot."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any, BinaryIO, cast

from psycopg import sql

from toolscript.core.postgres.pool import Connection, Pool, connection, transaction

BLOCK = 1 << 20
SCHEMAS = ["mcp", "documents"]
# Made by the migrations; held by a running command; changes of documents for another index version, which no
# backup has.
LEFT_OUT = {"mcp.schema_compatibility", "documents.reindex_lease", "documents.index_changes"}

# Unlogged tables hold nothing that outlives a crash either.
_TABLES = """
SELECT space.nspname, class.relname,
       ARRAY(SELECT attname::text FROM pg_attribute
             WHERE attrelid = class.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
             ORDER BY attnum),
       ARRAY(SELECT of_space.nspname || '.' || of_class.relname FROM pg_constraint
             JOIN pg_class of_class ON of_class.oid = confrelid
             JOIN pg_namespace of_space ON of_space.oid = of_class.relnamespace
             WHERE conrelid = class.oid AND contype = 'f')
FROM pg_class class JOIN pg_namespace space ON space.oid = class.relnamespace
WHERE space.nspname = ANY(%s) AND class.relkind IN ('r', 'p') AND NOT class.relispartition
  AND class.relpersistence = 'p'
ORDER BY 1, 2
"""
_SEQUENCES = """
SELECT schemaname, sequencename, last_value FROM pg_sequences
WHERE schemaname = ANY(%s) AND last_value IS NOT NULL ORDER BY 1, 2
"""
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# Copying has no time limit. The settings end with the transaction.
_NO_TIMEOUT = "SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL statement_timeout = 0"


@dataclass(frozen=True)
class Table:
    schema: str
    name: str
    columns: tuple[str, ...]

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def identifier(self) -> sql.Identifier:
        return sql.Identifier(self.schema, self.name)

    def listed(self, left_out: Sequence[str] = ()) -> sql.Composed:
        return sql.SQL(", ").join(sql.Identifier(name) for name in self.columns if name not in left_out)


@asynccontextmanager
async def one_snapshot(pool: Pool) -> AsyncIterator[Connection]:
    """Yield a connection that sees one state of the database: that of the first statement."""
    async with connection(pool) as conn:
        await conn.execute(_SNAPSHOT)
        try:
            await conn.execute(_NO_TIMEOUT)
            yield conn
        finally:
            await conn.rollback()


async def tables_of(conn: Connection) -> list[Table]:
    """Return our tables, each after those that it references."""
    rows = await (await conn.execute(_TABLES, (SCHEMAS,))).fetchall()
    tables, references = dict[str, Table](), dict[str, set[str]]()
    for schema, name, columns, referenced in rows:
        table = Table(str(schema), str(name), tuple(cast("list[str]", columns)))
        if table.full_name not in LEFT_OUT:
            tables[table.full_name] = table
            references[table.full_name] = set(cast("list[str]", referenced)) - {table.full_name}
    return [tables[name] for name in TopologicalSorter(references).static_order() if name in tables]


async def copy_out(conn: Connection, table: Table, file: BinaryIO, where: Mapping[str, str] | None = None) -> int:
    """Write the rows in PostgreSQL's text format, all or those with these values; return how many."""
    rows = sql.SQL("SELECT {} FROM {}").format(table.listed(), table.identifier)
    if where:
        conditions = [
            sql.SQL("{} = {}").format(sql.Identifier(name), sql.Literal(value)) for name, value in where.items()
        ]
        rows = sql.SQL("{} WHERE {}").format(rows, sql.SQL(" AND ").join(conditions))
    async with conn.cursor() as cursor:
        async with cursor.copy(sql.SQL("COPY ({}) TO STDOUT").format(rows)) as copy:
            async for data in copy:
                file.write(data)
        return cursor.rowcount


async def clear(conn: Connection, tables: Sequence[Table]) -> None:
    """Delete all rows, such as those that a migration has made, and those of other tables that refer to them."""
    names = sql.SQL(", ").join(table.identifier for table in tables)
    await conn.execute(sql.SQL("TRUNCATE {} CASCADE").format(names))


async def copy_in(conn: Connection, table: Table, file: BinaryIO) -> int:
    into = sql.SQL("{} ({})").format(table.identifier, table.listed())
    return await _copy_from(conn, into, file)


async def merge_in(
    conn: Connection,
    table: Table,
    file: BinaryIO,
    *,
    where: Mapping[str, str] | None = None,
    left_out: Sequence[str] = (),
) -> int:
    """Insert the rows that are not there yet, all or those with these values. Return how many.

    The columns in `left_out` get new values.
    """
    await conn.execute("DROP TABLE IF EXISTS pg_temp.restored")
    await conn.execute(sql.SQL("CREATE TEMP TABLE restored (LIKE {}) ON COMMIT DROP").format(table.identifier))
    await _copy_from(conn, sql.SQL("restored ({})").format(table.listed()), file)
    statement = sql.SQL(
        "INSERT INTO {} ({columns}) SELECT {columns} FROM restored WHERE {} ON CONFLICT DO NOTHING"
    )
    conditions = [
        sql.SQL("{} = {}").format(sql.Identifier(name), sql.Literal(value))
        for name, value in (where or {}).items()
    ]
    wanted = sql.SQL(" AND ").join(conditions) if conditions else sql.SQL("true")
    query = statement.format(table.identifier, wanted, columns=table.listed(left_out))
    return (await conn.execute(query)).rowcount


async def _copy_from(conn: Connection, into: sql.Composed, file: BinaryIO) -> int:
    async with conn.cursor() as cursor:
        async with cursor.copy(sql.SQL("COPY {} FROM STDIN").format(into)) as copy:
            while block := file.read(BLOCK):
                await copy.write(block)
        return cursor.rowcount


@asynccontextmanager
async def one_write(pool: Pool) -> AsyncIterator[Connection]:
    """Yield a transaction without time limits: all of it is stored, or nothing."""
    async with transaction(pool) as conn:
        await conn.execute(_NO_TIMEOUT)
        yield conn


async def sequences_of(conn: Connection) -> dict[str, int]:
    rows = await (await conn.execute(_SEQUENCES, (SCHEMAS,))).fetchall()
    return {f"{schema}.{name}": cast("int", last) for schema, name, last in rows}


async def advance_sequences(conn: Connection, last_values: Mapping[str, Any]) -> None:
    for name, last in last_values.items():
        await conn.execute("SELECT setval(%s::regclass, %s)", (name, int(last)))
