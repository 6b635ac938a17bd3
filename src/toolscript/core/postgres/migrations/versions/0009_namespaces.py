"""Namespaces: parts of one catalog that do not see each other."""

from alembic import op

revision = "0009"
down_revision = "0008"
# Older code would take the items of another namespace for those of its own source.
oldest_code = "0009"

# A column with a constant default rewrites no table. Each list has an index by namespace, so that a page of one
# namespace costs the same however many rows the others have.
UP = """
ALTER TABLE mcp.items
    ADD COLUMN namespace text COLLATE "C" NOT NULL DEFAULT 'default',
    DROP CONSTRAINT items_source_key_key,
    ADD UNIQUE (namespace, source, key);
DROP INDEX mcp.items_gone;
CREATE INDEX items_gone ON mcp.items (namespace, source, updated_at) WHERE NOT is_active;
CREATE INDEX items_of_namespace ON mcp.items (namespace, id) WHERE is_active;
-- With the kind in each, a page is merged from one page of each kind: four indexes serve all eight filters.
CREATE INDEX items_of_namespace_kind ON mcp.items (namespace, kind, id) WHERE is_active;
CREATE INDEX items_of_namespace_source ON mcp.items (namespace, source, kind, id) WHERE is_active;
CREATE INDEX items_of_namespace_server ON mcp.items (namespace, server, kind, id) WHERE is_active;
CREATE INDEX items_of_namespace_source_server ON mcp.items (namespace, source, server, kind, id) WHERE is_active;
DROP INDEX mcp.items_of_source;
DROP INDEX mcp.items_of_server;
DROP INDEX mcp.items_of_kind;

-- The primary key has the collation of the database.
CREATE INDEX skill_categories_in_order ON mcp.skill_categories (id COLLATE "C");
CREATE INDEX skill_categories_active ON mcp.skill_categories (id COLLATE "C") WHERE is_active;

ALTER TABLE mcp.sources
    ADD COLUMN namespace text COLLATE "C" NOT NULL DEFAULT 'default'
                         CHECK (namespace ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
    DROP CONSTRAINT sources_pkey,
    ADD PRIMARY KEY (namespace, name);
CREATE INDEX sources_by_name ON mcp.sources (name, namespace);

-- Copied from the item, which never changes its namespace.
ALTER TABLE mcp.item_changes ADD COLUMN namespace text COLLATE "C" NOT NULL DEFAULT 'default';
CREATE INDEX item_changes_namespace ON mcp.item_changes (namespace, id);
CREATE INDEX item_changes_namespace_state ON mcp.item_changes (namespace, state, id);

ALTER TABLE mcp.tool_skill_assignments ADD COLUMN namespace text COLLATE "C" NOT NULL DEFAULT 'default';
CREATE INDEX tool_skill_assignments_namespace ON mcp.tool_skill_assignments (skill_id, namespace, tool_id);

ALTER TABLE mcp.sync_jobs ADD COLUMN namespace text COLLATE "C" NOT NULL DEFAULT 'default';
CREATE INDEX sync_jobs_namespace ON mcp.sync_jobs (namespace, id);

ALTER TABLE mcp.skill_suggestions
    ADD COLUMN namespace text COLLATE "C" NOT NULL DEFAULT 'default',
    DROP CONSTRAINT skill_suggestions_key_key,
    ADD UNIQUE (namespace, key);
CREATE INDEX skill_suggestions_namespace ON mcp.skill_suggestions (namespace, id);
CREATE INDEX skill_suggestions_namespace_status ON mcp.skill_suggestions (namespace, status, id);

-- NULL: the subject is shared by all namespaces, as a skill is.
ALTER TABLE mcp.audit ADD COLUMN namespace text COLLATE "C" DEFAULT 'default';
UPDATE mcp.audit SET namespace = NULL WHERE action LIKE 'skill.%';
ALTER TABLE mcp.audit ALTER COLUMN namespace DROP DEFAULT;
CREATE INDEX audit_namespace ON mcp.audit (namespace, id);

ALTER TABLE mcp.counted_items ADD COLUMN namespace text COLLATE "C" NOT NULL DEFAULT 'default';

-- A skill has a row in the default namespace, and one in each other namespace that has, or had, items in it.
ALTER TABLE mcp.skill_vectors
    ADD COLUMN namespace text COLLATE "C" NOT NULL DEFAULT 'default',
    DROP CONSTRAINT skill_vectors_pkey,
    ADD PRIMARY KEY (generation, namespace, skill_id);
CREATE INDEX skill_vectors_of_skill ON mcp.skill_vectors (generation, skill_id, namespace);
"""

# Only the default namespace stays. The indexes and keys of a dropped column go with it.
DOWN = """
DELETE FROM mcp.skill_vectors WHERE namespace <> 'default';
ALTER TABLE mcp.skill_vectors DROP COLUMN namespace, ADD PRIMARY KEY (generation, skill_id);

DELETE FROM mcp.counted_items WHERE namespace <> 'default';
ALTER TABLE mcp.counted_items DROP COLUMN namespace;

DELETE FROM mcp.audit WHERE namespace <> 'default';
ALTER TABLE mcp.audit DROP COLUMN namespace;

DELETE FROM mcp.skill_suggestions WHERE namespace <> 'default';
ALTER TABLE mcp.skill_suggestions DROP COLUMN namespace, ADD UNIQUE (key);

DELETE FROM mcp.sync_jobs WHERE namespace <> 'default';
ALTER TABLE mcp.sync_jobs DROP COLUMN namespace;

DELETE FROM mcp.dirty_items USING mcp.items WHERE items.id = item_id AND items.namespace <> 'default';
-- Their changes, assignments and requests go with the items.
DELETE FROM mcp.items WHERE namespace <> 'default';
ALTER TABLE mcp.tool_skill_assignments DROP COLUMN namespace;
ALTER TABLE mcp.item_changes DROP COLUMN namespace;

DELETE FROM mcp.sources WHERE namespace <> 'default';
ALTER TABLE mcp.sources DROP COLUMN namespace, ADD PRIMARY KEY (name);

ALTER TABLE mcp.items DROP COLUMN namespace, ADD UNIQUE (source, key);
CREATE INDEX items_gone ON mcp.items (source, updated_at) WHERE NOT is_active;
CREATE INDEX items_of_source ON mcp.items (source, id) WHERE is_active;
CREATE INDEX items_of_server ON mcp.items (server, id) WHERE is_active;
CREATE INDEX items_of_kind ON mcp.items (kind, id) WHERE is_active;

DROP INDEX mcp.skill_categories_active;
DROP INDEX mcp.skill_categories_in_order;
"""


def upgrade() -> None:
    op.execute(UP)


def downgrade() -> None:
    op.execute(DOWN)
