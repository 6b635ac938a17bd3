"""Views: what a client of some namespaces sees of the catalog. Anything else does not exist for it."""

from toolscript.core.namespaces import Namespaces, ordered


def seen_in_view(namespace: str = "namespace") -> str:
    """Return the condition on a row that is found by id, with the value `seen`."""
    return f"(%(seen)s::text[] IS NULL OR {namespace} = ANY(%(seen)s::text[]))"


SEEN = seen_in_view()


def seen_of(namespaces: Namespaces) -> list[str] | None:
    """Return the value of `seen` in a statement."""
    return None if namespaces is None else list(ordered(namespaces))


def page_of(
    namespaces: Namespaces,
    rows: str,
    *,
    key: str = "id",
    columns: str = "",
    latest_first: bool = False,
) -> str:
    """Return the statement for the ids of a page, with the values `seen` and `limit`.

    With `columns`, of which one is named `id`, it returns these: each row is read once, not again by its id.
    `rows` is what follows FROM, with a WHERE. A view reads one page of each of its namespaces through an index,
    and merges them: the cost does not depend on the rows of other namespaces. So `rows` is one table, and a
    condition on another one is a scalar subquery: for a join or EXISTS, PostgreSQL may read all of the other one.
    """
    direction = "DESC" if latest_first else "ASC"
    limited = f"ORDER BY {key} {direction} LIMIT %(limit)s"
    selected = columns or f"{key} AS id"
    if namespaces is None:
        return f"SELECT {selected} FROM {rows} {limited}"  # noqa: S608 - callers pass constants only
    return f"""
SELECT page.* FROM unnest(%(seen)s::text[]) AS seen (name)
CROSS JOIN LATERAL (SELECT {selected} FROM {rows} AND namespace = seen.name {limited}) AS page
ORDER BY page.id {direction} LIMIT %(limit)s
"""  # noqa: S608 - callers pass constants only
