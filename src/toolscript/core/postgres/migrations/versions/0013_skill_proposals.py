"""Proposals about the taxonomy, in the queue of the suggestions."""

from alembic import op

revision = "0013"
down_revision = "0012"
# Older code would approve a proposal as a suggestion, and classify its items again instead of moving them.
oldest_code = "0013"

UP = """
-- `change`: the skills that a proposal creates and retires, and its evidence. `move_after`: the last item moved;
-- null when all is done.
ALTER TABLE mcp.skill_suggestions
    ADD COLUMN kind text NOT NULL DEFAULT 'suggestion'
        CHECK (kind IN ('suggestion', 'new', 'split', 'merge', 'retire')),
    ADD COLUMN change json,
    ADD COLUMN move_after bigint,
    DROP CONSTRAINT skill_suggestions_status_check,
    ADD CONSTRAINT skill_suggestions_status_check
        CHECK (status IN ('pending', 'approved', 'rejected', 'merged', 'undone'));
CREATE INDEX skill_suggestions_moving ON mcp.skill_suggestions (id) WHERE move_after IS NOT NULL;

-- Of a proposal: the skills that the item gets, and those that it had, to undo the move.
ALTER TABLE mcp.skill_suggestion_items
    ADD COLUMN skill_ids text[],
    ADD COLUMN confidences double precision[],
    ADD COLUMN previous json;
"""

DOWN = """
DELETE FROM mcp.skill_suggestions WHERE kind <> 'suggestion';
ALTER TABLE mcp.skill_suggestion_items DROP COLUMN skill_ids, DROP COLUMN confidences, DROP COLUMN previous;
ALTER TABLE mcp.skill_suggestions
    DROP COLUMN kind, DROP COLUMN change, DROP COLUMN move_after,
    DROP CONSTRAINT skill_suggestions_status_check,
    ADD CONSTRAINT skill_suggestions_status_check
        CHECK (status IN ('pending', 'approved', 'rejected', 'merged'));
"""


def upgrade() -> None:
    op.execute(UP)


def downgrade() -> None:
    op.execute(DOWN)
