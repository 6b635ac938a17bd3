"""Changed definitions of items, and requested sync jobs."""

from alembic import op

revision = "0003"
down_revision = "0002"
oldest_code = "0003"

UP = """
-- `definition` is the whole of what was seen, for as long as it may yet come into force.
CREATE TABLE mcp.item_changes (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    item_id         bigint NOT NULL REFERENCES mcp.items ON DELETE CASCADE,
    source          text NOT NULL,
    key             text NOT NULL,
    old_fingerprint text NOT NULL,
    new_fingerprint text NOT NULL,
    changed_fields  text[] NOT NULL,
    old             json NOT NULL,
    new             json NOT NULL,
    definition      json CHECK ((definition IS NOT NULL) = (state = 'held')),
    state           text NOT NULL CHECK (state IN ('applied', 'held', 'approved', 'rejected', 'withdrawn')),
    seen_at         timestamptz NOT NULL DEFAULT now(),
    reviewed_by     text,
    reviewed_at     timestamptz
);
CREATE INDEX item_changes_item ON mcp.item_changes (item_id, id);
CREATE INDEX item_changes_state ON mcp.item_changes (state, id);
CREATE UNIQUE INDEX item_changes_one_held ON mcp.item_changes (item_id) WHERE state = 'held';

-- Items that left their source.
CREATE INDEX items_gone ON mcp.items (source, updated_at) WHERE NOT is_active;

CREATE TABLE mcp.sync_jobs (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    state        text NOT NULL DEFAULT 'queued'
                 CHECK (state IN ('queued', 'running', 'done', 'failed', 'interrupted')),
    source       text NOT NULL,
    done         bigint NOT NULL DEFAULT 0,
    total        bigint,
    report       json,
    error        text,
    created_at   timestamptz NOT NULL DEFAULT now(),
    started_at   timestamptz,
    finished_at  timestamptz,
    heartbeat_at timestamptz NOT NULL DEFAULT now()
);
"""

DOWN = """
DROP TABLE mcp.sync_jobs;
DROP INDEX mcp.items_gone;
DROP TABLE mcp.item_changes;
"""


def upgrade() -> None:
    op.execute(UP)


def downgrade() -> None:
    op.execute(DOWN)
