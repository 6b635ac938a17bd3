"""Proposals are of new skills alone, and approved ones classify their items again, as suggestions do."""

from alembic import op

revision = "0017"
down_revision = "0016"
# Older code reads the columns that go.
oldest_code = "0017"

UP = """
-- What was decided keeps its items and their skills; what still moved is classified again instead.
DELETE FROM mcp.skill_suggestions WHERE kind IN ('split', 'merge', 'retire') AND status = 'pending';
UPDATE mcp.skill_suggestions SET call_after = 0 WHERE move_after IS NOT NULL;
-- What undoes these is gone with them: without a change recorded, an undo is refused.
UPDATE mcp.skill_suggestions SET change = NULL WHERE kind IN ('split', 'merge', 'retire');
UPDATE mcp.skill_suggestions SET kind = 'new' WHERE kind <> 'suggestion';
ALTER TABLE mcp.skill_suggestions
    DROP COLUMN move_after,
    DROP CONSTRAINT skill_suggestions_kind_check,
    ADD CONSTRAINT skill_suggestions_kind_check CHECK (kind IN ('suggestion', 'new'));
ALTER TABLE mcp.skill_suggestion_items DROP COLUMN previous;
"""

DOWN = """
ALTER TABLE mcp.skill_suggestions
    ADD COLUMN move_after bigint,
    DROP CONSTRAINT skill_suggestions_kind_check,
    ADD CONSTRAINT skill_suggestions_kind_check CHECK (kind IN ('suggestion', 'new', 'split', 'merge', 'retire'));
CREATE INDEX skill_suggestions_moving ON mcp.skill_suggestions (id) WHERE move_after IS NOT NULL;
ALTER TABLE mcp.skill_suggestion_items ADD COLUMN previous json;
"""


def upgrade() -> None:
    op.execute(UP)


def downgrade() -> None:
    op.execute(DOWN)
