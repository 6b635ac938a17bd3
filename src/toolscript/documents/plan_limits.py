"""Limits of a plan on a search, and on a list."""

from collections.abc import Sequence

from toolscript.core.auth.model import Plan
from toolscript.core.errors import PlanExceeded
from toolscript.core.items import JsonObject
from toolscript.documents.model.filters import Filters
from toolscript.documents.model.query import DocumentQuery


def require_within(plan: Plan, query: DocumentQuery) -> None:
    if plan.max_top_k is not None and query.top_k > plan.max_top_k:
        raise _beyond(plan, f"returns at most {plan.max_top_k} documents at once", "top_k")
    for name in query.metadata_fields or ():
        _require_field(plan, [name], "metadata_fields")
    require_filters_within(plan, query.filters)


def require_filters_within(plan: Plan, filters: Filters) -> None:
    for condition in filters.conditions:
        _require_field(plan, _paths(condition.field), "filters")


def usual_top_k(plan: Plan, usual: int) -> int:
    """Return how many documents a search returns that does not say how many."""
    return usual if plan.max_top_k is None else min(usual, plan.max_top_k)


def visible_metadata(plan: Plan, query: DocumentQuery, metadata: JsonObject) -> JsonObject:
    """Return the requested metadata fields that the plan allows; all allowed fields if none are requested."""
    visible = plan.visible(metadata)
    if query.metadata_fields is None:
        return visible
    return {name: visible[name] for name in query.metadata_fields if name in visible}


def _paths(name: str) -> list[str]:
    """Return the path and its parents: a plan that allows `author` also allows filters on `author.name`."""
    steps = name.split(".")
    return [".".join(steps[:end]) for end in range(len(steps), 0, -1)]


def _require_field(plan: Plan, names: Sequence[str], field: str) -> None:
    if plan.metadata_fields is not None and plan.metadata_fields.isdisjoint(names):
        raise _beyond(plan, f"does not include the field {names[0][:80]!r}", field)


def _beyond(plan: Plan, limit: str, field: str) -> PlanExceeded:
    return PlanExceeded(
        f"the plan {plan.name} {limit}", hint="request less, or choose another plan", details={"field": field}
    )
