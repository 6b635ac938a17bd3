"""Time since when an item is dirty: the oldest one is the lag of the index."""

from alembic import op

revision = "0007"
down_revision = "0006"
oldest_code = "0006"

# A repeated mark keeps the time: the index has not followed the first one yet.
UP = "ALTER TABLE mcp.dirty_items ADD COLUMN marked_at timestamptz NOT NULL DEFAULT now()"
DOWN = "ALTER TABLE mcp.dirty_items DROP COLUMN marked_at"


def upgrade() -> None:
    op.execute(UP)


def downgrade() -> None:
    op.execute(DOWN)
