"""Tenants, their request counts and their query log."""

from alembic import op

revision = "0004"
down_revision = "0003"
oldest_code = "0004"

UP = """
CREATE SCHEMA IF NOT EXISTS documents;

CREATE TABLE documents.tenants (
    name  text COLLATE "C" PRIMARY KEY,
    since timestamptz NOT NULL DEFAULT now()
);

-- Requests of one minute. Losing them in a crash costs nobody anything.
CREATE UNLOGGED TABLE documents.requests (
    tenant text NOT NULL,
    minute bigint NOT NULL,
    taken  bigint NOT NULL,
    PRIMARY KEY (tenant, minute)
);
CREATE INDEX requests_minute ON documents.requests (minute);

CREATE TABLE documents.queries (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          timestamptz NOT NULL,
    query_id    text NOT NULL,
    tenant      text NOT NULL,
    plan        text NOT NULL,
    search_type text NOT NULL,
    fusion      text NOT NULL,
    filters     integer NOT NULL,
    top_k       integer NOT NULL,
    hits        integer NOT NULL,
    total       bigint NOT NULL,
    took_ms     double precision NOT NULL,
    degraded    text[] NOT NULL,
    reranked_by text NOT NULL,
    text        text NOT NULL,
    found       text[] NOT NULL
);
CREATE INDEX queries_tenant ON documents.queries (tenant, id);
CREATE INDEX queries_at ON documents.queries (at);
"""

DOWN = """
DROP TABLE documents.queries;
DROP TABLE documents.requests;
DROP TABLE documents.tenants;
DROP SCHEMA documents;
"""


def upgrade() -> None:
    op.execute(UP)


def downgrade() -> None:
    op.execute(DOWN)
