"""Skills, assignments, suggestions, and the sums of skill centroids."""

from alembic import op

revision = "0002"
down_revision = "0001"
oldest_code = "0002"

UP = """
CREATE SEQUENCE mcp.skill_revision;

CREATE TABLE mcp.skill_categories (
    id            text PRIMARY KEY CHECK (id ~ '^[a-z][a-z0-9_]{0,63}$'),
    name          text NOT NULL,
    description   text NOT NULL DEFAULT '',
    parent_domain text,
    keywords      text[] NOT NULL DEFAULT '{}',
    examples      text[] NOT NULL DEFAULT '{}',
    is_active     boolean NOT NULL DEFAULT true,
    revision      bigint NOT NULL DEFAULT nextval('mcp.skill_revision'),
    created_at    timestamptz NOT NULL DEFAULT now(),
    updated_at    timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX skill_categories_revision ON mcp.skill_categories (revision);

ALTER TABLE mcp.index_generations
    DROP CONSTRAINT index_generations_state_check,
    ADD CHECK (state IN ('live', 'building', 'previous', 'dropped'));

ALTER TABLE mcp.items
    ADD COLUMN needs_skills boolean NOT NULL DEFAULT true,
    ADD COLUMN skills_by_hand boolean NOT NULL DEFAULT false;

CREATE TABLE mcp.tool_skill_assignments (
    tool_id     bigint NOT NULL REFERENCES mcp.items ON DELETE CASCADE,
    skill_id    text NOT NULL REFERENCES mcp.skill_categories,
    confidence  double precision NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    is_primary  boolean NOT NULL DEFAULT false,
    source      text NOT NULL CHECK (source IN ('llm', 'rules', 'human')),
    reason      text NOT NULL DEFAULT '',
    assigned_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tool_id, skill_id)
);
CREATE INDEX tool_skill_assignments_skill ON mcp.tool_skill_assignments (skill_id, tool_id);
CREATE UNIQUE INDEX tool_skill_assignments_one_primary ON mcp.tool_skill_assignments (tool_id) WHERE is_primary;

CREATE TABLE mcp.skill_suggestions (
    id                    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key                   text NOT NULL UNIQUE,
    suggested_name        text NOT NULL,
    suggested_description text NOT NULL DEFAULT '',
    status                text NOT NULL DEFAULT 'pending'
                          CHECK (status IN ('pending', 'approved', 'rejected', 'merged')),
    skill_id              text REFERENCES mcp.skill_categories,
    reviewed_by           text,
    reviewed_at           timestamptz,
    call_after            bigint,
    created_at            timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX skill_suggestions_status ON mcp.skill_suggestions (status, id);
-- Decided ones of which not all who asked have been called again.
CREATE INDEX skill_suggestions_unfinished ON mcp.skill_suggestions (id) WHERE call_after IS NOT NULL;

CREATE TABLE mcp.skill_suggestion_items (
    suggestion_id bigint NOT NULL REFERENCES mcp.skill_suggestions ON DELETE CASCADE,
    tool_id       bigint NOT NULL REFERENCES mcp.items ON DELETE CASCADE,
    PRIMARY KEY (suggestion_id, tool_id)
);
CREATE INDEX skill_suggestion_items_tool ON mcp.skill_suggestion_items (tool_id);

CREATE TABLE mcp.audit (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      timestamptz NOT NULL DEFAULT now(),
    actor   text NOT NULL,
    action  text NOT NULL,
    subject text NOT NULL,
    details json NOT NULL DEFAULT '{}'
);

-- What an item counts as in the sums: small enough to lie in its row, and never compressed.
CREATE TABLE mcp.counted_items (
    generation smallint NOT NULL REFERENCES mcp.index_generations ON DELETE CASCADE,
    item_id    bigint NOT NULL,
    text_hash  text NOT NULL,
    vector     bytea NOT NULL,
    skill_ids  text[] NOT NULL,
    weights    integer[] NOT NULL,
    PRIMARY KEY (generation, item_id)
) WITH (toast_tuple_target = 8160);
ALTER TABLE mcp.counted_items ALTER COLUMN vector SET STORAGE EXTERNAL;

-- `point_version` is that of the skill's point in the index: a smaller one has yet to follow.
CREATE TABLE mcp.skill_vectors (
    generation    smallint NOT NULL REFERENCES mcp.index_generations ON DELETE CASCADE,
    skill_id      text NOT NULL REFERENCES mcp.skill_categories,
    total         bytea,
    weight        bigint NOT NULL DEFAULT 0,
    members       bigint NOT NULL DEFAULT 0,
    version       bigint NOT NULL DEFAULT nextval('mcp.item_version'),
    point_version bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (generation, skill_id)
) WITH (toast_tuple_target = 8160, fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE mcp.skill_vectors ALTER COLUMN total SET STORAGE EXTERNAL;
CREATE INDEX skill_vectors_behind ON mcp.skill_vectors (generation, skill_id) WHERE point_version < version;
"""

DOWN = """
DROP TABLE mcp.skill_vectors;
DROP TABLE mcp.counted_items;
DROP TABLE mcp.audit;
DROP TABLE mcp.skill_suggestion_items;
DROP TABLE mcp.skill_suggestions;
DROP TABLE mcp.tool_skill_assignments;
ALTER TABLE mcp.items DROP COLUMN needs_skills, DROP COLUMN skills_by_hand;
DELETE FROM mcp.items WHERE NOT is_active;
DELETE FROM mcp.index_generations WHERE state = 'dropped';
ALTER TABLE mcp.index_generations
    DROP CONSTRAINT index_generations_state_check,
    ADD CHECK (state IN ('live', 'building', 'previous'));
DROP TABLE mcp.skill_categories;
DROP SEQUENCE mcp.skill_revision;
"""


def upgrade() -> None:
    op.execute(UP)


def downgrade() -> None:
    op.execute(DOWN)
