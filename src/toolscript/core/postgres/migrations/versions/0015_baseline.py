"""The schema of catalog, documents and logs, as the migrations before 0.1 left it."""

from alembic import op

revision = "0015"
down_revision = None
oldest_code = "0013"

UP = """
CREATE SCHEMA documents;
CREATE SCHEMA mcp;
CREATE SEQUENCE documents.index_change_revisions;
CREATE SEQUENCE mcp.item_version;
CREATE SEQUENCE mcp.skill_revision;

-- Empty, except from the start of a reindex until the version before it is dropped.
CREATE TABLE documents.index_versions (
    name text NOT NULL,
    state text NOT NULL,
    at_tenant text DEFAULT '' NOT NULL,
    at_key text DEFAULT '' NOT NULL,
    is_filled boolean DEFAULT false NOT NULL,
    begun_at timestamptz DEFAULT now() NOT NULL,
    CHECK (state IN ('building', 'live', 'previous')),
    PRIMARY KEY (name),
    UNIQUE (state) DEFERRABLE INITIALLY DEFERRED
);
COMMENT ON TABLE documents.index_versions IS 'The live version from the first write on, and the one beside it.';

-- `open_writes`: how many writers have begun and not ended.
CREATE TABLE documents.index_changes (
    target text NOT NULL REFERENCES documents.index_versions ON DELETE CASCADE,
    tenant text NOT NULL,
    key text NOT NULL,
    source text NOT NULL,
    revision bigint NOT NULL,
    open_writes integer NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (target, tenant, key)
);
CREATE INDEX index_changes_in_order ON documents.index_changes (target, revision);

CREATE TABLE documents.queries (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL,
    query_id text NOT NULL,
    tenant text NOT NULL,
    plan text NOT NULL,
    search_type text NOT NULL,
    fusion text NOT NULL,
    filters integer NOT NULL,
    top_k integer NOT NULL,
    hits integer NOT NULL,
    total bigint NOT NULL,
    took_ms double precision NOT NULL,
    degraded text[] NOT NULL,
    reranked_by text NOT NULL,
    text text NOT NULL,
    found text[] NOT NULL
);
CREATE INDEX queries_at ON documents.queries (at);
CREATE INDEX queries_tenant ON documents.queries (tenant, id);

-- The process that builds: another waits until the lease has ended.
CREATE TABLE documents.reindex_lease (
    only_row boolean DEFAULT true PRIMARY KEY,
    holder text NOT NULL,
    expires_at timestamptz NOT NULL,
    CHECK (only_row)
);

-- Requests of one minute. Losing them in a crash costs nobody anything.
CREATE UNLOGGED TABLE documents.requests (
    tenant text NOT NULL,
    minute bigint NOT NULL,
    taken bigint NOT NULL,
    PRIMARY KEY (tenant, minute)
);
CREATE INDEX requests_minute ON documents.requests (minute);

-- `holds_documents` null: the tenant has not written since this column was added, so nobody knows.
CREATE TABLE documents.tenants (
    name text COLLATE "C" PRIMARY KEY,
    since timestamptz DEFAULT now() NOT NULL,
    holds_documents boolean DEFAULT false
);

-- `namespace` null: the subject is shared by all namespaces, as a skill is.
CREATE TABLE mcp.audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz DEFAULT now() NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    subject text NOT NULL,
    details json DEFAULT '{}' NOT NULL,
    namespace text COLLATE "C",
    on_behalf_of text
);
CREATE INDEX audit_namespace ON mcp.audit (namespace, id);

CREATE TABLE mcp.index_generations (
    id smallint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    state text NOT NULL,
    fingerprint text,
    filled_up_to bigint DEFAULT 0 NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    CHECK (state IN ('live', 'building', 'previous', 'dropped')),
    UNIQUE (fingerprint)
);
CREATE UNIQUE INDEX index_generations_one_live ON mcp.index_generations (state) WHERE state = 'live';
INSERT INTO mcp.index_generations (state, filled_up_to) VALUES ('live', 9223372036854775807);

-- What an item counts as in the sums: small enough to lie in its row, and never compressed.
CREATE TABLE mcp.counted_items (
    generation smallint NOT NULL REFERENCES mcp.index_generations ON DELETE CASCADE,
    item_id bigint NOT NULL,
    text_hash text NOT NULL,
    vector bytea NOT NULL,
    skill_ids text[] NOT NULL,
    weights integer[] NOT NULL,
    namespace text DEFAULT 'default' NOT NULL COLLATE "C",
    PRIMARY KEY (generation, item_id)
) WITH (toast_tuple_target='8160');
ALTER TABLE mcp.counted_items ALTER COLUMN vector SET STORAGE EXTERNAL;

-- Raised with every write in a namespace, whose writers wait for each other here. Searches compare it.
CREATE TABLE mcp.curation_revisions (
    namespace text COLLATE "C" PRIMARY KEY,
    revision bigint NOT NULL
);

CREATE TABLE mcp.items (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source text NOT NULL,
    key text NOT NULL,
    kind text NOT NULL,
    server text NOT NULL,
    name text NOT NULL,
    description text NOT NULL,
    server_description text NOT NULL,
    input_schema json,
    output_schema json,
    annotations json,
    fingerprint text NOT NULL,
    version bigint NOT NULL,
    is_active boolean DEFAULT true NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    needs_skills boolean DEFAULT true NOT NULL,
    skills_by_hand boolean DEFAULT false NOT NULL,
    namespace text DEFAULT 'default' NOT NULL COLLATE "C",
    CHECK (kind IN ('tool', 'prompt', 'resource')),
    UNIQUE (namespace, source, key)
);
-- Items that left their source.
CREATE INDEX items_gone ON mcp.items (namespace, source, updated_at) WHERE NOT is_active;
CREATE INDEX items_of_namespace ON mcp.items (namespace, id) WHERE is_active;
-- With the kind in each, a page is merged from one page of each kind: four indexes serve all eight filters.
CREATE INDEX items_of_namespace_kind ON mcp.items (namespace, kind, id) WHERE is_active;
CREATE INDEX items_of_namespace_server ON mcp.items (namespace, server, kind, id) WHERE is_active;
CREATE INDEX items_of_namespace_source ON mcp.items (namespace, source, kind, id) WHERE is_active;
CREATE INDEX items_of_namespace_source_server ON mcp.items (namespace, source, server, kind, id)
    WHERE is_active;

-- A rule about an item that has left the catalog waits for it, until the item is deleted for good.
CREATE TABLE mcp.curation_rules (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace text NOT NULL COLLATE "C",
    kind text NOT NULL,
    words text NOT NULL,
    tool_id bigint REFERENCES mcp.items ON DELETE CASCADE,
    means text NOT NULL,
    mutual boolean NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CHECK ((kind = 'synonym') = (tool_id IS NULL)),
    CHECK (kind IN ('promote', 'synonym', 'never'))
);
CREATE INDEX curation_rules_namespace ON mcp.curation_rules (namespace, id);
CREATE INDEX curation_rules_of_tool ON mcp.curation_rules (tool_id);
CREATE UNIQUE INDEX curation_rules_once ON mcp.curation_rules (namespace, kind, words, COALESCE(tool_id, 0),
    means);

CREATE TABLE mcp.dirty_items (
    generation smallint NOT NULL REFERENCES mcp.index_generations ON DELETE CASCADE,
    item_id bigint NOT NULL,
    version bigint NOT NULL,
    free_at timestamptz DEFAULT '-infinity' NOT NULL,
    held_by text,
    attempts integer DEFAULT 0 NOT NULL,
    last_error text,
    marked_at timestamptz DEFAULT now() NOT NULL,
    PRIMARY KEY (generation, item_id)
) WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_cost_delay='0');
CREATE INDEX dirty_items_failing ON mcp.dirty_items (generation, item_id) WHERE last_error IS NOT NULL;
CREATE INDEX dirty_items_free ON mcp.dirty_items (generation, free_at, item_id);
CREATE INDEX dirty_items_held ON mcp.dirty_items (held_by) WHERE held_by IS NOT NULL;

-- `definition` is the whole of what was seen, for as long as it may yet come into force.
CREATE TABLE mcp.item_changes (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    item_id bigint NOT NULL REFERENCES mcp.items ON DELETE CASCADE,
    source text NOT NULL,
    key text NOT NULL,
    old_fingerprint text NOT NULL,
    new_fingerprint text NOT NULL,
    changed_fields text[] NOT NULL,
    old json NOT NULL,
    new json NOT NULL,
    definition json,
    state text NOT NULL,
    seen_at timestamptz DEFAULT now() NOT NULL,
    reviewed_by text,
    reviewed_at timestamptz,
    namespace text DEFAULT 'default' NOT NULL COLLATE "C",
    on_behalf_of text,
    CHECK ((definition IS NOT NULL) = (state = 'held')),
    CHECK (state IN ('applied', 'held', 'approved', 'rejected', 'withdrawn'))
);
CREATE INDEX item_changes_item ON mcp.item_changes (item_id, id);
CREATE INDEX item_changes_namespace ON mcp.item_changes (namespace, id);
CREATE INDEX item_changes_namespace_state ON mcp.item_changes (namespace, state, id);
CREATE UNIQUE INDEX item_changes_one_held ON mcp.item_changes (item_id) WHERE state = 'held';
CREATE INDEX item_changes_state ON mcp.item_changes (state, id);

-- One row, which every migration sets: programs whose own last migration is this one or a later one may run.
CREATE TABLE mcp.schema_compatibility (
    only_row boolean DEFAULT true PRIMARY KEY,
    oldest_code text NOT NULL,
    CHECK (only_row)
);

CREATE TABLE mcp.skill_categories (
    id text PRIMARY KEY,
    name text NOT NULL,
    description text DEFAULT '' NOT NULL,
    parent_domain text,
    keywords text[] DEFAULT '{}' NOT NULL,
    examples text[] DEFAULT '{}' NOT NULL,
    is_active boolean DEFAULT true NOT NULL,
    revision bigint DEFAULT nextval('mcp.skill_revision') NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CHECK (id ~ '^[a-z][a-z0-9_]{0,63}$')
);
CREATE INDEX skill_categories_active ON mcp.skill_categories (id COLLATE "C") WHERE is_active;
-- The primary key has the collation of the database.
CREATE INDEX skill_categories_in_order ON mcp.skill_categories (id COLLATE "C");
CREATE INDEX skill_categories_revision ON mcp.skill_categories (revision);

-- `skill_updated_at` and `tool_count`: what the skill was when it was described, to see when it is no longer that.
CREATE TABLE mcp.skill_descriptions (
    skill_id text NOT NULL REFERENCES mcp.skill_categories,
    namespace text NOT NULL COLLATE "C",
    description text NOT NULL,
    source text NOT NULL,
    tool_count bigint NOT NULL,
    skill_updated_at timestamptz NOT NULL,
    described_at timestamptz DEFAULT now() NOT NULL,
    CHECK (source IN ('rules', 'llm')),
    PRIMARY KEY (skill_id, namespace)
);

-- `change`: the skill that a proposal creates, and its evidence.
CREATE TABLE mcp.skill_suggestions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key text NOT NULL,
    suggested_name text NOT NULL,
    suggested_description text DEFAULT '' NOT NULL,
    status text DEFAULT 'pending' NOT NULL,
    skill_id text REFERENCES mcp.skill_categories,
    reviewed_by text,
    reviewed_at timestamptz,
    call_after bigint,
    created_at timestamptz DEFAULT now() NOT NULL,
    namespace text DEFAULT 'default' NOT NULL COLLATE "C",
    on_behalf_of text,
    kind text DEFAULT 'suggestion' NOT NULL,
    change json,
    move_after bigint,
    CHECK (kind IN ('suggestion', 'new', 'split', 'merge', 'retire')),
    CHECK (status IN ('pending', 'approved', 'rejected', 'merged', 'undone')),
    UNIQUE (namespace, key)
);
CREATE INDEX skill_suggestions_moving ON mcp.skill_suggestions (id) WHERE move_after IS NOT NULL;
CREATE INDEX skill_suggestions_namespace ON mcp.skill_suggestions (namespace, id);
CREATE INDEX skill_suggestions_namespace_status ON mcp.skill_suggestions (namespace, status, id);
CREATE INDEX skill_suggestions_status ON mcp.skill_suggestions (status, id);
-- Decided ones of which not all items have been classified again.
CREATE INDEX skill_suggestions_unfinished ON mcp.skill_suggestions (id) WHERE call_after IS NOT NULL;

CREATE TABLE mcp.skill_suggestion_items (
    suggestion_id bigint NOT NULL REFERENCES mcp.skill_suggestions ON DELETE CASCADE,
    tool_id bigint NOT NULL REFERENCES mcp.items ON DELETE CASCADE,
    skill_ids text[],
    confidences double precision[],
    previous json,
    PRIMARY KEY (suggestion_id, tool_id)
);
CREATE INDEX skill_suggestion_items_tool ON mcp.skill_suggestion_items (tool_id);

-- `point_version` is that of the skill's point in the index: a smaller one has yet to follow. A skill has a row in
-- the default namespace, and one in each other namespace that has, or had, items in it.
CREATE TABLE mcp.skill_vectors (
    generation smallint NOT NULL REFERENCES mcp.index_generations ON DELETE CASCADE,
    skill_id text NOT NULL REFERENCES mcp.skill_categories,
    total bytea,
    weight bigint DEFAULT 0 NOT NULL,
    members bigint DEFAULT 0 NOT NULL,
    version bigint DEFAULT nextval('mcp.item_version') NOT NULL,
    point_version bigint DEFAULT 0 NOT NULL,
    namespace text DEFAULT 'default' NOT NULL COLLATE "C",
    PRIMARY KEY (generation, namespace, skill_id)
) WITH (toast_tuple_target='8160', fillfactor='50', autovacuum_vacuum_scale_factor='0.02');
ALTER TABLE mcp.skill_vectors ALTER COLUMN total SET STORAGE EXTERNAL;
CREATE INDEX skill_vectors_behind ON mcp.skill_vectors (generation, skill_id) WHERE point_version < version;
CREATE INDEX skill_vectors_of_skill ON mcp.skill_vectors (generation, skill_id, namespace);

CREATE TABLE mcp.sources (
    name text NOT NULL COLLATE "C",
    items bigint NOT NULL,
    synced_at timestamptz DEFAULT now() NOT NULL,
    namespace text DEFAULT 'default' NOT NULL COLLATE "C",
    CHECK (namespace ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
    PRIMARY KEY (namespace, name)
);
CREATE INDEX sources_by_name ON mcp.sources (name, namespace);

CREATE TABLE mcp.sync_jobs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    state text DEFAULT 'queued' NOT NULL,
    source text NOT NULL,
    done bigint DEFAULT 0 NOT NULL,
    total bigint,
    report json,
    error text,
    created_at timestamptz DEFAULT now() NOT NULL,
    started_at timestamptz,
    finished_at timestamptz,
    heartbeat_at timestamptz DEFAULT now() NOT NULL,
    namespace text DEFAULT 'default' NOT NULL COLLATE "C",
    CHECK (state IN ('queued', 'running', 'done', 'failed', 'interrupted'))
);
CREATE INDEX sync_jobs_namespace ON mcp.sync_jobs (namespace, id);

-- The sets of namespaces that were searched: a client sees a set if it sees all of it.
CREATE TABLE mcp.tool_search_scopes (
    scope text COLLATE "C" PRIMARY KEY,
    namespaces text[] NOT NULL COLLATE "C",
    first_namespace text NOT NULL COLLATE "C",
    last_day date NOT NULL
);
CREATE INDEX tool_search_scopes_first_namespace ON mcp.tool_search_scopes (first_namespace);

-- The service creates the partition of each day, and drops those that are too old: mcp.tool_searches_p20261231.
-- `scope`: the namespaces that were searched, in order, with spaces between them. `text_key`: of the text without
-- case and punctuation. There is no reference to items: a log does not keep one from being deleted.
CREATE TABLE mcp.tool_searches (
    at timestamptz NOT NULL,
    query_id uuid NOT NULL,
    scope text NOT NULL COLLATE "C",
    channel text NOT NULL,
    search_type text NOT NULL,
    strategy text NOT NULL,
    hits integer NOT NULL,
    good_match boolean,
    took_ms double precision NOT NULL,
    degraded text[] NOT NULL,
    text text NOT NULL,
    text_key bigint,
    unmatched text[] NOT NULL,
    tool_id bigint,
    confidence double precision,
    PRIMARY KEY (at, query_id)
) PARTITION BY RANGE (at);
CREATE INDEX tool_searches_missed ON mcp.tool_searches (at, query_id) INCLUDE (text_key)
    WHERE good_match IS FALSE;
CREATE INDEX tool_searches_missed_of_scope ON mcp.tool_searches (scope, at, query_id)
    INCLUDE (text_key) WHERE good_match IS FALSE;
CREATE INDEX tool_searches_of_scope ON mcp.tool_searches (scope, at, query_id);

CREATE TABLE mcp.tool_skill_assignments (
    tool_id bigint NOT NULL REFERENCES mcp.items ON DELETE CASCADE,
    skill_id text NOT NULL REFERENCES mcp.skill_categories,
    confidence double precision NOT NULL,
    is_primary boolean DEFAULT false NOT NULL,
    source text NOT NULL,
    reason text DEFAULT '' NOT NULL,
    assigned_at timestamptz DEFAULT now() NOT NULL,
    namespace text DEFAULT 'default' NOT NULL COLLATE "C",
    CHECK ((confidence >= 0) AND (confidence <= 1)),
    CHECK (source IN ('llm', 'rules', 'human')),
    PRIMARY KEY (tool_id, skill_id)
);
CREATE INDEX tool_skill_assignments_namespace ON mcp.tool_skill_assignments (skill_id, namespace, tool_id);
CREATE UNIQUE INDEX tool_skill_assignments_one_primary ON mcp.tool_skill_assignments (tool_id) WHERE is_primary;
CREATE INDEX tool_skill_assignments_skill ON mcp.tool_skill_assignments (skill_id, tool_id);
"""

DOWN = "DROP SCHEMA mcp CASCADE; DROP SCHEMA documents CASCADE"


def upgrade() -> None:
    op.execute(UP)


def downgrade() -> None:
    op.execute(DOWN)
