"""What the audit of an installation holds."""

import getpass
from collections.abc import Mapping

import psycopg

ENTRIES = "SELECT action, actor, count FROM mcp.audit WHERE action = ANY(%s) ORDER BY id"


def by_me(environment: Mapping[str, str], *actions: str) -> list[tuple[str, int]]:
    """Return action and count of each entry with one of these actions. All are by the logged-in user."""
    with psycopg.connect(environment["TOOLSCRIPT_POSTGRES_URL"]) as conn:
        rows = conn.execute(ENTRIES, (list(actions),)).fetchall()
    assert {actor for _, actor, _ in rows} <= {getpass.getuser()}
    return [(action, count) for action, _, count in rows]


def count_of(environment: Mapping[str, str], actor: str) -> int:
    with psycopg.connect(environment["TOOLSCRIPT_POSTGRES_URL"]) as conn:
        row = conn.execute("SELECT count(*) FROM mcp.audit WHERE actor = %s", (actor,)).fetchone()
    return int(row[0]) if row else 0
