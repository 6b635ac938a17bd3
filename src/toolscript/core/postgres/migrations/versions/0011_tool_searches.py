"""The log of tool searches, in one partition per day."""

from alembic import op

revision = "0011"
down_revision = "0010"
# Older code logs nothing, and breaks nothing.
oldest_code = "0009"

UP = """
-- The service creates the partition of each day, and drops those that are too old: mcp.tool_searches_p20261231.
-- `scope`: the namespaces that were searched, in order, with spaces between them. `text_key`: of the text without
-- case and punctuation. There is no reference to items: a log does not keep one from being deleted.
CREATE TABLE mcp.tool_searches (
    at          timestamptz NOT NULL,
    query_id    uuid NOT NULL,
    scope       text COLLATE "C" NOT NULL,
    channel     text NOT NULL,
    search_type text NOT NULL,
    strategy    text NOT NULL,
    hits        integer NOT NULL,
    good_match  boolean,
    took_ms     double precision NOT NULL,
    degraded    text[] NOT NULL,
    text        text NOT NULL,
    text_key    bigint,
    unmatched   text[] NOT NULL,
    tool_id     bigint,
    confidence  double precision,
    PRIMARY KEY (at, query_id)
) PARTITION BY RANGE (at);
CREATE INDEX tool_searches_of_scope ON mcp.tool_searches (scope, at, query_id);
CREATE INDEX tool_searches_missed ON mcp.tool_searches (at, query_id) INCLUDE (text_key)
    WHERE good_match IS FALSE;
CREATE INDEX tool_searches_missed_of_scope ON mcp.tool_searches (scope, at, query_id) INCLUDE (text_key)
    WHERE good_match IS FALSE;

-- The sets of namespaces that were searched: a client sees a set if it sees all of it.
CREATE TABLE mcp.tool_search_scopes (
    scope           text COLLATE "C" PRIMARY KEY,
    namespaces      text[] COLLATE "C" NOT NULL,
    first_namespace text COLLATE "C" NOT NULL,
    last_day        date NOT NULL
);
CREATE INDEX tool_search_scopes_first_namespace ON mcp.tool_search_scopes (first_namespace);
"""

DOWN = """
DROP TABLE mcp.tool_search_scopes;
DROP TABLE mcp.tool_searches;
"""


def upgrade() -> None:
    op.execute(UP)


def downgrade() -> None:
    op.execute(DOWN)
