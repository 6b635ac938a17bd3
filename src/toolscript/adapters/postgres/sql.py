"""Statements that the catalog and the dirty set share."""

# A store sees either all of the generations or is seen by the newest one's fill: never neither.
SHARE_GENERATIONS = "SELECT pg_advisory_xact_lock_shared(7406002)"
OWN_GENERATIONS = "SELECT pg_advisory_xact_lock(7406002)"

# An item that somebody holds stays held; its holder finds the new version when it clears.
_ON_CHANGE = """
ON CONFLICT (generation, item_id) DO UPDATE SET
    version = excluded.version, attempts = 0, last_error = NULL,
    free_at = CASE WHEN dirty.held_by IS NULL THEN '-infinity' ELSE dirty.free_at END
"""

MARK_CHANGED = f"""
INSERT INTO mcp.dirty_items AS dirty (generation, item_id, version)
SELECT generations.id, changed.id, changed.version
FROM mcp.index_generations generations, unnest(%(ids)s::bigint[], %(versions)s::bigint[]) AS changed (id, version)
ORDER BY generations.id, changed.id
{_ON_CHANGE}
"""  # noqa: S608 - built from constants only

MARK = f"""
INSERT INTO mcp.dirty_items AS dirty (generation, item_id, version)
SELECT %(generation)s, id, nextval('mcp.item_version') FROM unnest(%(ids)s::bigint[]) AS id ORDER BY id
{_ON_CHANGE}
"""  # noqa: S608 - built from constants only
