"""What a search answers."""

from dataclasses import dataclass, field

from toolscript.model.items import ItemKind, Schemas


@dataclass(frozen=True)
class ToolHit:
    id: int
    kind: ItemKind
    server: str
    name: str
    description: str
    score: float
    skill_ids: tuple[str, ...] = ()
    primary_skill_id: str | None = None
    schemas: Schemas = field(default_factory=Schemas)
    confidence: float | None = None


@dataclass(frozen=True)
class Timings:
    """Milliseconds per stage; a stage that did not run took 0. `ranking` is part of `tool_search`."""

    query_embedding: float = 0.0
    skill_search: float = 0.0
    tool_search: float = 0.0
    ranking: float = 0.0
    schema_load: float = 0.0
    total: float = 0.0


@dataclass(frozen=True)
class ToolAnswer:
    """`degraded` names every part that failed; it is empty when all was well.

    `near_misses` are the best below the threshold, when nothing reaches it. `good_match` is the verdict on the
    best, None where one arm alone was asked for; `unmatched` are the words that none of the candidates has.
    """

    query: str
    hits: tuple[ToolHit, ...]
    candidate_count: int
    search_type_used: str
    timings: Timings
    degraded: tuple[str, ...] = ()
    index: str = ""
    near_misses: tuple[ToolHit, ...] = ()
    good_match: bool | None = None
    unmatched: tuple[str, ...] = ()
