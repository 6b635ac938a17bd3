"""Sources of items with their counts, and items by source, server and kind."""

from alembic import op

revision = "0006"
down_revision = "0005"
# Older code does not update the counts.
oldest_code = "0006"

UP = """
CREATE TABLE mcp.sources (
    name      text COLLATE "C" PRIMARY KEY,
    items     bigint NOT NULL,
    synced_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO mcp.sources (name, items, synced_at)
SELECT source, count(*) FILTER (WHERE is_active), max(updated_at) FROM mcp.items GROUP BY source;

CREATE INDEX items_of_source ON mcp.items (source, id) WHERE is_active;
CREATE INDEX items_of_server ON mcp.items (server, id) WHERE is_active;
CREATE INDEX items_of_kind ON mcp.items (kind, id) WHERE is_active;
"""

DOWN = """
DROP INDEX mcp.items_of_kind;
DROP INDEX mcp.items_of_server;
DROP INDEX mcp.items_of_source;
DROP TABLE mcp.sources;
"""


def upgrade() -> None:
    op.execute(UP)


def downgrade() -> None:
    op.execute(DOWN)
