"""Versions of the documents index, and changes that a version lacks."""

from alembic import op

revision = "0008"
down_revision = "0007"
# Older code does not record its writes: a version built meanwhile would lack them.
oldest_code = "0008"

UP = """
CREATE SEQUENCE documents.index_change_revisions;

-- Empty, except from the start of a reindex until the version before it is dropped.
CREATE TABLE documents.index_versions (
    name         text PRIMARY KEY,
    state        text NOT NULL CHECK (state IN ('building', 'live', 'previous')),
    at_tenant    text NOT NULL DEFAULT '',
    at_key       text NOT NULL DEFAULT '',
    is_filled    boolean NOT NULL DEFAULT false,
    begun_at     timestamptz NOT NULL DEFAULT now(),
    UNIQUE (state) DEFERRABLE INITIALLY DEFERRED
);

-- The process that builds: another waits until the lease has ended.
CREATE TABLE documents.reindex_lease (
    only_row   boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    holder     text NOT NULL,
    expires_at timestamptz NOT NULL
);

-- open_writes: how many writers have begun and not ended.
CREATE TABLE documents.index_changes (
    target      text NOT NULL REFERENCES documents.index_versions ON DELETE CASCADE,
    tenant      text NOT NULL,
    key         text NOT NULL,
    source      text NOT NULL,
    revision    bigint NOT NULL,
    open_writes integer NOT NULL,
    at          timestamptz NOT NULL,
    PRIMARY KEY (target, tenant, key)
);
CREATE INDEX index_changes_in_order ON documents.index_changes (target, revision);
"""

DOWN = """
DROP TABLE documents.index_changes;
DROP TABLE documents.reindex_lease;
DROP TABLE documents.index_versions;
DROP SEQUENCE documents.index_change_revisions;
"""


def upgrade() -> None:
    op.execute(UP)


def downgrade() -> None:
    op.execute(DOWN)
