"""Indexing in turns by namespace, counts in the audit, and a query log of documents by day."""

from alembic import op

revision = "0016"
down_revision = "0015"
oldest_code = "0013"

UP = """
-- Copied from the item, which never changes its namespace. Code before this marks all items as of `default`: they
-- are indexed as before, in one line.
ALTER TABLE mcp.dirty_items ADD COLUMN namespace text COLLATE "C" NOT NULL DEFAULT 'default';
UPDATE mcp.dirty_items SET namespace = items.namespace
FROM mcp.items WHERE items.id = item_id AND items.namespace <> 'default';
CREATE INDEX dirty_items_turns ON mcp.dirty_items (generation, namespace, free_at, item_id);
DROP INDEX mcp.dirty_items_free;

-- How many objects a change touched; null: a job that has not ended, or an entry from before. The namespace '' is
-- that of entries for administrators alone.
ALTER TABLE mcp.audit ADD COLUMN count bigint;
ALTER TABLE mcp.sync_jobs ADD COLUMN audit_id bigint;
"""

DOWN = """
ALTER TABLE mcp.sync_jobs DROP COLUMN audit_id;
DELETE FROM mcp.audit WHERE namespace = '';
ALTER TABLE mcp.audit DROP COLUMN count;
CREATE INDEX dirty_items_free ON mcp.dirty_items (generation, free_at, item_id);
DROP INDEX mcp.dirty_items_turns;
ALTER TABLE mcp.dirty_items DROP COLUMN namespace;
"""


def upgrade() -> None:
    op.execute(UP)


def downgrade() -> None:
    op.execute(DOWN)
