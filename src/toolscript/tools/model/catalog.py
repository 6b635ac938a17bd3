"""Values of the catalog: sources, items, changes, the dirty set and jobs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from toolscript.core.errors import Conflict, NotFound
from toolscript.core.items import Assignment, Item, ItemKind, JsonObject

LIST_HINT = "`toolscript tools list` and GET /api/v1/tools list what is there"

# What a person compares, in the order in which it is shown; all that an item's fingerprint covers.
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

# Tries after which an item counts as failing rather than unlucky.
FAILING_AFTER = 3

# A job whose process has said nothing for so long has no process any more.
SILENT_SECONDS = 30.0
MAX_JOBS_KEPT = 1_000


@dataclass(frozen=True)
class ItemSource:
    """Where items come from. `synced_at` is when something was last taken from it, changed or not."""

    name: str
    items: int
    synced_at: datetime


@dataclass(frozen=True)
class ItemFilter:
    """None: any."""

    source: str | None = None
    server: str | None = None
    kind: ItemKind | None = None


@dataclass(frozen=True)
class CatalogItem:
    """An item that is in force, and where it came from."""

    id: int
    source: str
    item: Item
    updated_at: datetime
    assignments: Sequence[Assignment] = ()


def unknown_item(item_id: int) -> NotFound:
    return NotFound(f"there is no tool {item_id} in the catalog", hint=LIST_HINT, details={"tool_id": item_id})


class ChangeState(StrEnum):
    """`applied` as it came; `held` until somebody decides; `withdrawn` when the source did not wait for that."""

    APPLIED = "applied"
    HELD = "held"
    APPROVED = "approved"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True)
class ItemChange:
    """`server` and `name` are those in force now."""

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


@dataclass(frozen=True)
class ChangeDetails:
    """The fields that changed, as they were and as they are said to be."""

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
    """What `definition_of` took apart. Built from our own record: nothing in it is checked again."""
    given = {field: definition[field] for field in DEFINING_FIELDS}
    return Item(key=key, **{**given, "kind": ItemKind(str(given["kind"]))})  # type: ignore[arg-type]


def difference(old: Item, new: Item) -> Difference:
    was, now = definition_of(old), definition_of(new)
    # As JSON, because to Python 1, 1.0 and True are the same.
    fields = tuple(name for name in DEFINING_FIELDS if _canonical(was[name]) != _canonical(now[name]))
    return Difference(fields, {name: was[name] for name in fields}, {name: now[name] for name in fields})


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def unknown_change(change_id: int) -> NotFound:
    hint = "see which there are with `toolscript changes list`"
    return NotFound(f"there is no change {change_id}", hint=hint, details={"change_id": change_id})


def not_held(change: ItemChange) -> Conflict:
    by = f" by {change.reviewed_by}" if change.reviewed_by else ""
    return Conflict(
        f"change {change.id} does not wait for a decision: it is {change.state}{by}",
        hint="see which wait with `toolscript changes list --state held`",
        details={"change_id": change.id, "state": str(change.state)},
    )


def outdated_change(change: ItemChange) -> Conflict:
    return Conflict(
        f"the definition that change {change.id} would replace is no longer in force",
        hint="sync the source again, then decide about what it says now",
        details={"change_id": change.id, "state": str(change.state)},
    )


@dataclass(frozen=True)
class Claim:
    """Dirty items that one worker holds until its lease ends: item id to the version that made it dirty.

    `taken_over` are those that another worker held before, and may yet write: nobody knows what became of it.
    """

    token: str
    versions: dict[int, int]
    taken_over: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Pending:
    """How many items are dirty, how many of those have failed again and again, and how long the oldest waits."""

    total: int
    failing: int
    # The clock goes on while two are compared.
    oldest_seconds: float = field(default=0.0, compare=False)


class GenerationState(StrEnum):
    LIVE = "live"
    BUILDING = "building"
    PREVIOUS = "previous"


@dataclass(frozen=True)
class Generation:
    """One index built from the catalog. `fingerprint` is None until the first worker chooses the model."""

    id: int
    state: GenerationState
    fingerprint: str | None


class JobState(StrEnum):
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
    """`source` is where the items come from; `total` is None while nobody knows it."""

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


@dataclass(frozen=True)
class JobProgress:
    id: int
    done: int
    total: int | None


def unknown_job(job_id: int) -> NotFound:
    hint = f"jobs are kept until {MAX_JOBS_KEPT:,} later ones have come; post the sync again"
    return NotFound(f"there is no sync job {job_id}", hint=hint, details={"job_id": job_id})
