"""Descriptions of skills made from their items, beside those that people wrote."""

from alembic import op

revision = "0014"
down_revision = "0013"
oldest_code = "0013"

UP = """
-- `skill_updated_at` and `tool_count`: what the skill was when it was described, to see when it is no longer that.
CREATE TABLE mcp.skill_descriptions (
    skill_id         text NOT NULL REFERENCES mcp.skill_categories,
    namespace        text COLLATE "C" NOT NULL,
    description      text NOT NULL,
    source           text NOT NULL CHECK (source IN ('rules', 'llm')),
    tool_count       bigint NOT NULL,
    skill_updated_at timestamptz NOT NULL,
    described_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (skill_id, namespace)
);
"""

DOWN = "DROP TABLE mcp.skill_descriptions"


def upgrade() -> None:
    op.execute(UP)


def downgrade() -> None:
    op.execute(DOWN)
