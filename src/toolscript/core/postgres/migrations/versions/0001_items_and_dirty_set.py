"""Items, index versions and the dirty set."""

from alembic import op

revision = "0001"
down_revision = None
oldest_code = "0001"

UP = """
CREATE SCHEMA mcp;

CREATE SEQUENCE mcp.item_version;

CREATE TABLE mcp.items (
    id                 bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source             text NOT NULL,
    key                text NOT NULL,
    kind               text NOT NULL CHECK (kind IN ('tool', 'prompt', 'resource')),
    server             text NOT NULL,
    name               text NOT NULL,
    description        text NOT NULL,
    server_description text NOT NULL,
    input_schema       json,
    output_schema      json,
    annotations        json,
    fingerprint        text NOT NULL,
    version            bigint NOT NULL,
    is_active          boolean NOT NULL DEFAULT true,
    created_at         timestamptz NOT NULL DEFAULT now(),
    updated_at         timestamptz NOT NULL DEFAULT now(),
    UNIQUE (source, key)
);

CREATE TABLE mcp.index_generations (
    id           smallint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    state        text NOT NULL CHECK (state IN ('live', 'building', 'previous')),
    fingerprint  text UNIQUE,
    filled_up_to bigint NOT NULL DEFAULT 0,
    created_at   timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX index_generations_one_live ON mcp.index_generations (state) WHERE state = 'live';
INSERT INTO mcp.index_generations (state, filled_up_to) VALUES ('live', 9223372036854775807);

CREATE TABLE mcp.dirty_items (
    generation smallint NOT NULL REFERENCES mcp.index_generations ON DELETE CASCADE,
    item_id    bigint NOT NULL,
    version    bigint NOT NULL,
    free_at    timestamptz NOT NULL DEFAULT '-infinity',
    held_by    text,
    attempts   integer NOT NULL DEFAULT 0,
    last_error text,
    PRIMARY KEY (generation, item_id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX dirty_items_free ON mcp.dirty_items (generation, free_at, item_id);
CREATE INDEX dirty_items_held ON mcp.dirty_items (held_by) WHERE held_by IS NOT NULL;
CREATE INDEX dirty_items_failing ON mcp.dirty_items (generation, item_id) WHERE last_error IS NOT NULL;
"""

DOWN = """
DROP TABLE mcp.dirty_items;
DROP TABLE mcp.index_generations;
DROP TABLE mcp.items;
DROP SEQUENCE mcp.item_version;
DROP SCHEMA mcp;
"""


def upgrade() -> None:
    op.execute(UP)


def downgrade() -> None:
    op.execute(DOWN)
