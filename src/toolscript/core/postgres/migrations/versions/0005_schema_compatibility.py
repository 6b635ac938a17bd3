"""Versions of the program that the schema supports, so that two can run side by side."""

from alembic import op

revision = "0005"
down_revision = "0004"
# Older code requires exactly its own revision.
oldest_code = "0005"

UP = """
-- One row, which every migration sets: programs whose own last migration is this one or a later one may run.
CREATE TABLE mcp.schema_compatibility (
    only_row    boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    oldest_code text NOT NULL
);
"""

DOWN = """
DROP TABLE mcp.schema_compatibility;
"""


def upgrade() -> None:
    op.execute(UP)


def downgrade() -> None:
    op.execute(DOWN)
