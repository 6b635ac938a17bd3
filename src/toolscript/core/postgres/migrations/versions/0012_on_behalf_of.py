"""For whom an actor decided, in the client's own words. The actor itself is authenticated."""

from alembic import op

revision = "0012"
down_revision = "0011"
# Older code leaves the column empty.
oldest_code = "0009"

UP = """
ALTER TABLE mcp.audit ADD COLUMN on_behalf_of text;
ALTER TABLE mcp.skill_suggestions ADD COLUMN on_behalf_of text;
ALTER TABLE mcp.item_changes ADD COLUMN on_behalf_of text;
"""

DOWN = """
ALTER TABLE mcp.item_changes DROP COLUMN on_behalf_of;
ALTER TABLE mcp.skill_suggestions DROP COLUMN on_behalf_of;
ALTER TABLE mcp.audit DROP COLUMN on_behalf_of;
"""


def upgrade() -> None:
    op.execute(UP)


def downgrade() -> None:
    op.execute(DOWN)
