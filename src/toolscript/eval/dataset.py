"""A judged set in a folder: `tools.jsonl` or `docs.jsonl`, `queries.jsonl`, and for grades `qrels.tsv`."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from toolscript.errors import InvalidRequest, NotFound
from toolscript.model.item_json import item_from_json
from toolscript.model.items import Item, ItemKind
from toolscript.model.judged import JudgedQuery, JudgedSet
from toolscript.model.queries import MAX_QUERY
from toolscript.model.text import readable

TOOLS, DOCUMENTS, QUERIES, GRADES = "tools.jsonl", "docs.jsonl", "queries.jsonl", "qrels.tsv"
# What an engine may have been tuned on says nothing about it.
LEFT_OUT_SPLITS = ("dev", "train")
MAX_TITLE = 512
T = TypeVar("T")

Grades = Mapping[str, Mapping[str, int]]


def read_judged_set(folder: Path, *, distractors: Path | None = None) -> JudgedSet:
    """With `distractors`, the tools of that folder too, but for those it excludes for a set of this name.

    Lines of a catalog that say `"kind": "api"` are no tools of a server, and distract from nothing.
    """
    name = folder.resolve().name
    documents = not (folder / TOOLS).is_file() and (folder / DOCUMENTS).is_file()
    own = _items(folder / DOCUMENTS, _document) if documents else _tools(folder)
    keys = frozenset(item.key for item in own)
    queries = _queries(folder, keys)
    added = [] if distractors is None else _distractors(distractors, name, keys)
    mixed_in = "" if distractors is None else distractors.resolve().name
    return JudgedSet(name, [*own, *added], queries, mixed_in, documents)


def _tools(folder: Path) -> list[Item]:
    return _items(folder / TOOLS, item_from_json)


def _distractors(folder: Path, set_name: str, keys: frozenset[str]) -> list[Item]:
    excluded = folder / f"exclude_{set_name}.txt"
    unwanted = set(_text(excluded).split("\n")) if excluded.is_file() else set[str]()
    items = _items(folder / TOOLS, item_from_json, lambda row: row.get("kind") != "api")
    return [item for item in items if item.key not in unwanted and item.key not in keys]


def _items(
    path: Path,
    read: Callable[[Mapping[str, Any]], Item],
    wanted: Callable[[Mapping[str, Any]], bool] = lambda _: True,
) -> list[Item]:
    items: dict[str, Item] = {}
    for number, row in _rows(path):
        if not wanted(row):
            continue
        item = _at(path, number, read, row)
        if item.key in items:
            raise _wrong(path, number, f"the id {item.key!r} is there already")
        items[item.key] = item
    if not items:
        raise InvalidRequest(
            f"{path} holds no items", hint="put a JSON object with name and description on each line"
        )
    return list(items.values())


def _document(row: Mapping[str, Any]) -> Item:
    """A title may be missing, and may be longer than a name."""
    key = readable(str(row.get("id", ""))).strip()
    if not key:
        raise InvalidRequest("id is missing")
    title = readable(str(row.get("title") or "")).strip() or key
    text = readable(str(row.get("text") or "")).strip()
    return Item(key, ItemKind.RESOURCE, server="", name=title[:MAX_TITLE], description=text)


def _queries(folder: Path, keys: frozenset[str]) -> list[JudgedQuery]:
    path = folder / QUERIES
    rows = [(number, row) for number, row in _rows(path) if not _is_left_out(row)]
    ids = {str(row.get("id")) for _, row in rows}
    grades = _grades(folder / GRADES, ids, keys) if (folder / GRADES).is_file() else {}
    queries = [_at(path, number, lambda row: _query(row, grades, keys), row) for number, row in rows]
    if len(ids) != len(queries):
        raise InvalidRequest(f"{path} has queries with the same id", hint="give each query an id of its own")
    if not any(query.answerable for query in queries):
        raise InvalidRequest(
            f"nothing in {folder} says which items answer a query",
            hint=f'give queries `gold_groups`, such as [["item id"]], or write {GRADES}: query TAB item TAB grade',
        )
    return queries


def _is_left_out(row: Mapping[str, Any]) -> bool:
    return str(row.get("split") or "").startswith(LEFT_OUT_SPLITS)


def _query(row: Mapping[str, Any], grades: Grades, keys: frozenset[str]) -> JudgedQuery:
    text = readable(str(row.get("text") or "")).strip()[:MAX_QUERY]
    if not text or row.get("id") is None:
        raise InvalidRequest(f"{'text' if not text else 'id'} is missing")
    steps = _steps(row.get("gold_groups") or [], keys)
    id_ = str(row["id"])
    return JudgedQuery(id_, text, grades.get(id_) or {key: 1 for step in steps for key in sorted(step)}, steps)


def _steps(groups: object, keys: frozenset[str]) -> tuple[frozenset[str], ...]:
    if not isinstance(groups, list) or not all(isinstance(group, list) for group in groups):
        raise InvalidRequest("gold_groups must be a list of lists of item ids")
    steps = tuple(frozenset(map(str, group)) for group in groups if group)
    if unknown := sorted(frozenset().union(*steps) - keys):
        raise InvalidRequest(f"no item has the id {unknown[0]!r}")
    return steps


def _grades(path: Path, queries: set[str], keys: frozenset[str]) -> Grades:
    """Lines of other queries and of grade 0 say nothing."""
    grades: dict[str, dict[str, int]] = {}
    for number, line in enumerate(_text(path).split("\n"), 1):
        cells = line.split("\t")
        if not line.strip() or (number == 1 and not cells[-1].strip().lstrip("-").isdigit()):
            continue
        query, key, grade = _at(path, number, _grade, cells)
        if query in queries and grade > 0:
            if key not in keys:
                raise _wrong(path, number, f"no item has the id {key!r}")
            grades.setdefault(query, {})[key] = grade
    return grades


def _grade(cells: Sequence[str]) -> tuple[str, str, int]:
    try:
        query, key, grade = cells
        return query, key, int(grade)
    except ValueError:
        raise InvalidRequest("expected query id, item id and a whole number, with tabs between") from None


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in enumerate(_text(path).split("\n"), 1):
        if line.strip():
            yield number, _at(path, number, _object, line)


def _object(line: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"not JSON: {str(error)[:80]}") from None
    if not isinstance(row, dict):
        raise InvalidRequest("not a JSON object")
    return row


def _at(path: Path, number: int, read: Callable[[Any], T], given: object) -> T:
    """What is wrong with a line is said with where the line stands."""
    try:
        return read(given)
    except InvalidRequest as error:
        raise _wrong(path, number, error.message) from None


def _wrong(path: Path, number: int, problem: str) -> InvalidRequest:
    return InvalidRequest(f"{path}, line {number}: {problem}", hint="mend the line or remove it")


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except OSError as error:
        hint = f"a judged set is a folder with {TOOLS} or {DOCUMENTS}, and {QUERIES}"
        raise NotFound(f"cannot read {path}: {error.strerror}", hint=hint) from None
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{path} is not text in UTF-8: {error.reason}", hint="save it as UTF-8") from None
