"""Rules of people about tool search: promotions, synonyms and exclusions."""

from alembic import op

revision = "0010"
down_revision = "0009"
# Older code does not apply the rules, and breaks nothing.
oldest_code = "0009"

UP = """
-- A rule about an item that has left the catalog waits for it, until the item is deleted for good.
CREATE TABLE mcp.curation_rules (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace  text COLLATE "C" NOT NULL,
    kind       text NOT NULL CHECK (kind IN ('promote', 'synonym', 'never')),
    words      text NOT NULL,
    tool_id    bigint REFERENCES mcp.items ON DELETE CASCADE,
    means      text NOT NULL,
    mutual     boolean NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CHECK ((kind = 'synonym') = (tool_id IS NULL))
);
CREATE INDEX curation_rules_namespace ON mcp.curation_rules (namespace, id);
CREATE INDEX curation_rules_of_tool ON mcp.curation_rules (tool_id);
CREATE UNIQUE INDEX curation_rules_once
    ON mcp.curation_rules (namespace, kind, words, coalesce(tool_id, 0), means);

-- Raised with every write in a namespace, whose writers wait for each other here. Searches compare it.
CREATE TABLE mcp.curation_revisions (
    namespace text COLLATE "C" PRIMARY KEY,
    revision  bigint NOT NULL
);
"""

DOWN = """
DROP TABLE mcp.curation_revisions;
DROP TABLE mcp.curation_rules;
"""


def upgrade() -> None:
    op.execute(UP)


def downgrade() -> None:
    op.execute(DOWN)
