"""What a plan lets a search ask for."""

from toolscript.errors import PlanExceeded
from toolscript.model.document_queries import DocumentQuery
from toolscript.model.items import JsonObject
from toolscript.model.tenancy import Plan


def require_within(plan: Plan, query: DocumentQuery) -> None:
    if plan.max_top_k is not None and query.top_k > plan.max_top_k:
        raise _beyond(plan, f"gives at most {plan.max_top_k} documents at once", "top_k")
    for name in query.metadata_fields or ():
        _require_field(plan, name, "metadata_fields")
    for condition in query.filters.conditions:
        _require_field(plan, condition.field, "filters")


def shown_metadata(plan: Plan, query: DocumentQuery, metadata: JsonObject) -> JsonObject:
    """What was asked for, as far as the plan goes; asked for nothing in particular: all of it."""
    names = metadata.keys() if query.metadata_fields is None else set(query.metadata_fields)
    allowed = plan.metadata_fields
    return {
        name: value for name, value in metadata.items() if name in names and (allowed is None or name in allowed)
    }


def _require_field(plan: Plan, name: str, asked: str) -> None:
    """Whoever may see an object may see what is in it."""
    allowed = plan.metadata_fields
    steps = name.split(".")
    if allowed is not None and not any(".".join(steps[:end]) in allowed for end in range(1, len(steps) + 1)):
        raise _beyond(plan, f"does not include the field {name[:80]!r}", asked)


def _beyond(plan: Plan, limit: str, field: str) -> PlanExceeded:
    return PlanExceeded(
        f"the plan {plan.name} {limit}", hint="ask for less, or for another plan", details={"field": field}
    )
