"""Values of the catalog: sources, items, changes, the dirty set and jobs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from toolscript.core.errors import Conflict, NotFound
from toolscript.core.items import Assignment, Item, ItemKind, JsonObject
from toolscript.core.namespaces import DEFAULT_NAMESPACE

LIST_HINT = "GET /api/v1/tools lists what is there"

# The fields that a person compares, in display order; an item's fingerprint covers exactly these.
DEFINING_FIELDS = (
    "kind",
    "server",
    "name",
    "description",
    "server_description",
    "input_schema",
    "output_schema",
    "annotations",
)
MAX_KEPT_PER_ITEM = 20

# Attempts after which an item counts as failing.
FAILING_AFTER = 3

# A job without a heartbeat for this long has no process any more.
SILENT_SECONDS = 30.0
MAX_JOBS_KEPT = 1_000


@dataclass(frozen=True)
class ItemSource:
    """A source of items. `synced_at` is the time of its last sync, with or without changes."""

    name: str
    items: int
    synced_at: datetime
    namespace: str = DEFAULT_NAMESPACE


@dataclass(frozen=True)
class ItemFilter:
    """Conditions on items; None matches any."""

    source: str | None = None
    server: str | None = None
    kind: ItemKind | None = None
    namespace: str | None = None


@dataclass(frozen=True)
class CatalogItem:
    """An active item and its source."""

    id: int
    source: str
    item: Item
    updated_at: datetime
    assignments: Sequence[Assignment] = ()
    namespace: str = DEFAULT_NAMESPACE


def unknown_item(item_id: int) -> NotFound:
    return NotFound(f"there is no tool {item_id} in the catalog", hint=LIST_HINT, details={"tool_id": item_id})


class ChangeState(StrEnum):
    """`applied` at once; `held` until a person decides; `withdrawn` when the source changed it before that."""

    APPLIED = "applied"
    HELD = "held"
    APPROVED = "approved"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True)
class ItemChange:
    """A change of an item's definition. `server` and `name` are the current ones."""

    id: int
    item_id: int
    source: str
    key: str
    server: str
    name: str
    old_fingerprint: str
    new_fingerprint: str
    changed_fields: tuple[str, ...]
    state: ChangeState
    seen_at: datetime
    reviewed_by: str | None = None
    reviewed_at: datetime | None = None
    namespace: str = DEFAULT_NAMESPACE
    on_behalf_of: str | None = None


@dataclass(frozen=True)
class ChangeDetails:
    """A change with the old and new values of the fields that differ."""

    change: ItemChange
    old: JsonObject
    new: JsonObject


@dataclass(frozen=True)
class Difference:
    """Two definitions of one item; `fields` is empty when nothing in them differs."""

    fields: tuple[str, ...]
    old: JsonObject
    new: JsonObject


def definition_of(item: Item) -> dict[str, object]:
    return {field: getattr(item, field) for field in DEFINING_FIELDS}


def item_of(key: str, definition: Mapping[str, object]) -> Item:
    """Return the item of a stored definition; the inverse of `definition_of`. It is not validated again."""
    fields = {field: definition[field] for field in DEFINING_FIELDS}
    return Item(key=key, **{**fields, "kind": ItemKind(str(fields["kind"]))})  # type: ignore[arg-type]


def difference(old: Item, new: Item) -> Difference:
    was, now = definition_of(old), definition_of(new)
    # As JSON, because to Python 1, 1.0 and True are the same.
    fields = tuple(name for name in DEFINING_FIELDS if _canonical(was[name]) != _canonical(now[name]))
    return Difference(fields, {name: was[name] for name in fields}, {name: now[name] for name in fields})


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def unknown_change(change_id: int) -> NotFound:
    hint = "`toolscript changes list` and GET /api/v1/changes list what is there"
    return NotFound(f"there is no change {change_id}", hint=hint, details={"change_id": change_id})


def not_held(change: ItemChange) -> Conflict:
    by = f" by {change.reviewed_by}" if change.reviewed_by else ""
    return Conflict(
        f"change {change.id} is not held: it is {change.state}{by}",
        hint="`toolscript changes list --state held` and GET /api/v1/changes?state=held list the held ones",
        details={"change_id": change.id, "state": str(change.state)},
    )


def outdated_change(change: ItemChange) -> Conflict:
    return Conflict(
        f"the definition that change {change.id} would replace is no longer current",
        hint="sync the source again, then decide about its current definition",
        details={"change_id": change.id, "state": str(change.state)},
    )


@dataclass(frozen=True)
class Claim:
    """Dirty items that one worker holds until its lease ends: item id to the version that made it dirty.

    `expired_leases` are items whose lease another worker let expire; it may be dead, or still write them.
    """

    token: str
    versions: dict[int, int]
    expired_leases: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Pending:
    """The number of dirty items, how many of those keep failing, and the age of the oldest."""

    total: int
    failing: int
    # The age differs between two reads.
    oldest_seconds: float = field(default=0.0, compare=False)


class IndexVersionState(StrEnum):
    LIVE = "live"
    BUILDING = "building"
    PREVIOUS = "previous"


@dataclass(frozen=True)
class IndexVersion:
    """An index version, built from the catalog. `fingerprint` is None until the first worker sets the model."""

    id: int
    state: IndexVersionState
    fingerprint: str | None


class JobState(StrEnum):
    """State of a job. `interrupted`: its process ended or sends no heartbeat; start it again."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    INTERRUPTED = "interrupted"

    @property
    def is_open(self) -> bool:
        return self in (JobState.QUEUED, JobState.RUNNING)


@dataclass(frozen=True)
class SyncJob:
    """A sync of one source; `total` is None while it is unknown."""

    id: int
    state: JobState
    source: str
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    done: int = 0
    total: int | None = None
    report: JsonObject | None = None
    error: str | None = None
    namespace: str = DEFAULT_NAMESPACE


@dataclass(frozen=True)
class JobProgress:
    id: int
    done: int
    total: int | None


def unknown_job(job_id: int) -> NotFound:
    hint = f"jobs are kept until {MAX_JOBS_KEPT:,} later ones have come; post it to /api/v1/jobs again"
    return NotFound(f"there is no job {job_id}", hint=hint, details={"job_id": job_id})
