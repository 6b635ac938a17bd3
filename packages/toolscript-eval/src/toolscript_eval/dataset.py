"""Datasets: a catalog, queries and judgements, as values and in files; drafts of them."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from toolscript.core.errors import InvalidRequest, NotFound, SetupError
from toolscript.core.item_json import item_from_json
from toolscript.core.items import Item, ItemKind
from toolscript.core.retrieval.query import MAX_QUERY
from toolscript.core.text import readable
from toolscript.tools.model.query import Strategy

TOOLS, DOCUMENTS, QUERIES, GRADES = "tools.jsonl", "docs.jsonl", "queries.jsonl", "qrels.tsv"
# Splits that an engine may have been tuned on.
LEFT_OUT_SPLITS = ("dev", "train")
MAX_TITLE = 512
MAX_LABEL = 100
_QUERY_FIELDS = frozenset({"id", "text", "gold_groups", "split"})
T = TypeVar("T")

Grades = Mapping[str, Mapping[str, int]]

QRELS = "qrels.tsv"


@dataclass(frozen=True)
class DatasetQuery:
    """`relevant` has grades by item key; all `steps` are needed, and any item of a step satisfies it.

    An unanswerable query has neither. `labels` are the other fields of its line, such as a language.
    """

    id: str
    text: str
    relevant: Mapping[str, int] = field(default_factory=dict)
    steps: tuple[frozenset[str], ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def answerable(self) -> bool:
        return bool(self.relevant)


@dataclass(frozen=True)
class Dataset:
    """`distractors` is the name of the mixed-in catalog; empty without one.

    `sampled_from` is the number of queries that these were sampled from; None if they are all.
    """

    name: str
    items: Sequence[Item]
    queries: Sequence[DatasetQuery]
    distractors: str = ""
    documents: bool = False
    sampled_from: int | None = None


@dataclass(frozen=True)
class Route:
    """The route of a query: the strategy that ran, its skills, and the share of items searched.

    `skills_of` has the skills of each item by its key, the same for all queries of a catalog.
    """

    strategy: Strategy
    skills: tuple[str, ...] = ()
    share: float = 1.0
    skills_of: Mapping[str, Collection[str]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def is_routed(self) -> bool:
        return self.strategy is not Strategy.DIRECT

    def reaches(self, key: str) -> bool:
        """Return whether an item was searched at all."""
        if self.strategy is not Strategy.HIERARCHICAL:
            return True
        return not frozenset(self.skills).isdisjoint(self.skills_of.get(key, ()))


@dataclass(frozen=True)
class Shown:
    """What a person gets to see at default settings: the keys of hits, of the hits of steps and of their twins, or
    of the guesses where there are none; the verdict, and the highest confidence."""

    keys: frozenset[str]
    good_match: bool
    confidence: float


@dataclass(frozen=True)
class EngineAnswer:
    """One answer: keys best first, the probability that the first is right, and the good-match verdict.

    `stages` are milliseconds by name; `tokens` is what a model reads of the answer, None if not counted;
    `route` is None without skill routing. `fit` is the logit that anything fits; None where confidence decides.
    `shown` is None for a system that shows a ranking alone.
    """

    keys: tuple[str, ...]
    confidence: float | None = None
    good_match: bool | None = None
    stages: Mapping[str, float] = field(default_factory=dict)
    tokens: int | None = None
    route: Route | None = None
    fit: float | None = None
    shown: Shown | None = None


@dataclass(frozen=True)
class Measure:
    """A metric with its 95 % bootstrap interval over the measured queries."""

    value: float
    low: float
    high: float
    queries: int


class SystemRole(StrEnum):
    """Peer: another project's own code on the same catalog. Ablated: the engine with one of its parts off."""

    ENGINE = "engine"
    BASELINE = "baseline"
    PEER = "peer"
    ABLATED = "ablated"


@dataclass(frozen=True)
class SystemReport:
    """`measures` by name (`ndcg@10`, `recall@5`, ...); `by_query` is nDCG@10 of each answerable query by id.

    `note` describes a peer: its version and its mode.
    """

    system: str
    measures: Mapping[str, Measure]
    by_query: Mapping[str, float] = field(default_factory=dict)
    role: SystemRole = SystemRole.ENGINE
    note: str = ""


@dataclass(frozen=True)
class CurvePoint:
    """The effect of a confidence threshold: share of answerable queries refused, share of unanswerable queries
    refused, and share refused when the relevant items are removed from the catalog."""

    threshold: float
    false_refusals: float
    refused_unanswerable: float | None = None
    refused_without_gold: float | None = None


@dataclass(frozen=True)
class TradeOff:
    """The effect of a verdict threshold: share of answerable queries refused, of unanswerable queries answered."""

    threshold: float
    false_refusals: float
    false_answers: float


@dataclass(frozen=True)
class Verdict:
    """The good-match verdict on all answerable queries, and on the unanswerable ones of one kind.

    `measures` are those of the verdict in use, `curve` is what other thresholds would do, the lowest first.
    """

    kind: str
    queries: int
    measures: Mapping[str, Measure]
    curve: tuple[TradeOff, ...] = ()


@dataclass(frozen=True)
class CalibrationBin:
    """The share of `queries` answers of about this confidence whose first item is relevant."""

    confidence: float
    right: float
    queries: int


@dataclass(frozen=True)
class Slice:
    """The measures of the engine on the queries whose label `name` has this value."""

    name: str
    value: str
    queries: int
    unanswerable: int
    measures: Mapping[str, Measure]


@dataclass(frozen=True)
class EvalReport:
    """The engine first, then the baselines and peers on the same catalog, then the ablated engines.

    `held_out` describes how the weights were fitted without this dataset; empty if unknown. `strategy` is the
    requested one. `slices` are the engine's measures by the labels that the request names; `verdicts` are those on
    each kind of unanswerable queries. `sampled_from` is as in the dataset.
    """

    dataset: str
    distractors: str
    engine: str
    model: str
    items: int
    queries: int
    unanswerable: int
    systems: tuple[SystemReport, ...]
    calibration: tuple[CalibrationBin, ...] = ()
    curve: tuple[CurvePoint, ...] = ()
    seed: int = 0
    held_out: str = ""
    strategy: Strategy = Strategy.DIRECT
    slices: tuple[Slice, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    sampled_from: int | None = None


class SkillSet(StrEnum):
    """Where the skills come from: `proposed` ones from an empty taxonomy; `both` adds proposals to the default."""

    DEFAULT = "default"
    PROPOSED = "proposed"
    BOTH = "both"


@dataclass(frozen=True)
class EvalRequest:
    """The dataset and the options of an evaluation. `count` limits the queries; `by` names labels of queries.

    `before` is an earlier report as data, `weights` the ranking weights as data; None: those of the engine.
    """

    dataset: Path
    distractors: Path | None = None
    model: str | None = None
    count: int | None = None
    without_gold: bool = True
    ablate: bool = False
    seed: int = 0
    before: Mapping[str, object] | None = None
    weights: Mapping[str, object] | None = None
    strategy: Strategy = Strategy.DIRECT
    by: tuple[str, ...] = ()
    skills: SkillSet = SkillSet.DEFAULT


@dataclass(frozen=True)
class EvalResult:
    """A report as plain data for machines, and as text for people."""

    data: Mapping[str, object]
    text: str


@dataclass(frozen=True)
class WrittenPage:
    """The paths of a page and its plots, and the numbers of datasets and reports in them.

    `verdict_plot` is None if every query of the reports has an answer.
    """

    page: str
    plot: str
    verdict_plot: str | None
    sets: int
    reports: int


@dataclass(frozen=True)
class DraftedQuery:
    """`note` describes what a person has to check, where a rule is unreliable."""

    kind: str
    query: DatasetQuery
    note: str = ""


@dataclass(frozen=True)
class Draft:
    """A drafted dataset; the queries refer to items by key."""

    items: Sequence[Item]
    queries: Sequence[DraftedQuery]

    def judged(self, name: str) -> Dataset:
        return Dataset(name, self.items, [query.query for query in self.queries])

    @property
    def counts(self) -> Mapping[str, int]:
        """Return the number of queries of each kind, in order of drafting."""
        return dict(Counter(query.kind for query in self.queries))


@dataclass(frozen=True)
class WrittenDraft:
    folder: str
    tools: int
    counts: Mapping[str, int]
    refused_lines: int = 0


def read_dataset(folder: Path, *, distractors: Path | None = None) -> Dataset:
    """Read a dataset. `distractors` adds the tools of that folder, except those it excludes for this dataset.

    Distractors with `"kind": "api"` are left out: they are no tools of a server.
    """
    name = folder.resolve().name
    documents = not (folder / TOOLS).is_file() and (folder / DOCUMENTS).is_file()
    own = _items(folder / DOCUMENTS, _document) if documents else _items(folder / TOOLS, item_from_json)
    keys = frozenset(item.key for item in own)
    queries = _queries(folder, keys)
    added = [] if distractors is None else _distractors(distractors, name, keys)
    mixed_in = "" if distractors is None else distractors.resolve().name
    return Dataset(name, [*own, *added], queries, mixed_in, documents)


def read_catalog(folder: Path) -> list[Item]:
    """Read the tools of a dataset without its queries."""
    return _items(folder / TOOLS, item_from_json)


def _distractors(folder: Path, set_name: str, keys: frozenset[str]) -> list[Item]:
    excluded = folder / f"exclude_{set_name}.txt"
    unwanted = set(_text(excluded).split("\n")) if excluded.is_file() else set[str]()
    items = _items(folder / TOOLS, item_from_json, lambda row: row.get("kind") != "api")
    return [item for item in items if item.key not in unwanted and item.key not in keys]


def _items(
    path: Path,
    read: Callable[[Mapping[str, Any]], Item],
    is_included: Callable[[Mapping[str, Any]], bool] = lambda _: True,
) -> list[Item]:
    items: dict[str, Item] = {}
    for number, row in json_rows(path):
        if not is_included(row):
            continue
        item = located(path, number, read, row)
        if item.key in items:
            raise _wrong(path, number, f"the id {item.key!r} is there already")
        items[item.key] = item
    if not items:
        raise InvalidRequest(
            f"{path} holds no items", hint="put a JSON object with name and description on each line"
        )
    return list(items.values())


def _document(row: Mapping[str, Any]) -> Item:
    """Return a document as an item; its title may be missing, or longer than a name."""
    key = readable(str(row.get("id", ""))).strip()
    if not key:
        raise InvalidRequest("id is missing")
    title = readable(str(row.get("title") or "")).strip() or key
    text = readable(str(row.get("text") or "")).strip()
    return Item(key, ItemKind.RESOURCE, server="", name=title[:MAX_TITLE], description=text)


def _queries(folder: Path, keys: frozenset[str]) -> list[DatasetQuery]:
    path = folder / QUERIES
    rows = [(number, row) for number, row in json_rows(path) if not _is_left_out(row)]
    ids = {str(row.get("id")) for _, row in rows}
    grades = _grades(folder / GRADES, ids, keys) if (folder / GRADES).is_file() else {}
    queries = [located(path, number, lambda row: _query_from_json(row, grades, keys), row) for number, row in rows]
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


def _query_from_json(row: Mapping[str, Any], grades: Grades, keys: frozenset[str]) -> DatasetQuery:
    text = readable(str(row.get("text") or "")).strip()[:MAX_QUERY]
    if not text or row.get("id") is None:
        raise InvalidRequest(f"{'text' if not text else 'id'} is missing")
    steps = _steps(row.get("gold_groups") or [], keys)
    id_ = str(row["id"])
    relevant = grades.get(id_) or {key: 1 for step in steps for key in sorted(step)}
    labels = {name: str(value) for name, value in row.items() if name not in _QUERY_FIELDS and _is_label(value)}
    return DatasetQuery(id_, text, relevant, steps, labels)


def _is_label(value: object) -> bool:
    return isinstance(value, str | bool | int) and len(str(value)) <= MAX_LABEL


def _steps(groups: object, keys: frozenset[str]) -> tuple[frozenset[str], ...]:
    if not isinstance(groups, list) or not all(isinstance(group, list) for group in groups):
        raise InvalidRequest("gold_groups must be a list of lists of item ids")
    steps = tuple(frozenset(map(str, group)) for group in groups if group)
    if unknown := sorted(frozenset().union(*steps) - keys):
        raise InvalidRequest(f"no item has the id {unknown[0]!r}")
    return steps


def _grades(path: Path, queries: set[str], keys: frozenset[str]) -> Grades:
    """Read the qrels; ignore lines of other queries and of grade 0."""
    grades: dict[str, dict[str, int]] = {}
    for number, line in enumerate(_text(path).split("\n"), 1):
        cells = line.split("\t")
        if not line.strip() or (number == 1 and not cells[-1].strip().lstrip("-").isdigit()):
            continue
        query, key, grade = located(path, number, _grade, cells)
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


def json_rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the JSON objects of a file with their line numbers."""
    for number, line in enumerate(_text(path).split("\n"), 1):
        if line.strip():
            yield number, located(path, number, _object, line)


def _object(line: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"not JSON: {str(error)[:80]}") from None
    if not isinstance(row, dict):
        raise InvalidRequest("not a JSON object")
    return row


def located(path: Path, number: int, read: Callable[[Any], T], value: object) -> T:
    """Read a value; add file and line to an error."""
    try:
        return read(value)
    except InvalidRequest as error:
        raise _wrong(path, number, error.message) from None


def _wrong(path: Path, number: int, problem: str) -> InvalidRequest:
    return InvalidRequest(f"{path}, line {number}: {problem}", hint="correct the line or remove it")


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except OSError as error:
        hint = f"a dataset is a folder with {TOOLS} or {DOCUMENTS}, and {QUERIES}"
        raise NotFound(f"cannot read {path}: {error.strerror}", hint=hint) from None
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{path} is not text in UTF-8: {error.reason}", hint="save it as UTF-8") from None


def check_folder(folder: Path, *, overwrite: bool) -> None:
    """Refuse a folder where files would be lost, or where qrels of other queries exist."""
    if folder.exists() and not folder.is_dir():
        raise InvalidRequest(f"{folder} is not a folder", hint="name a folder, new or empty")
    if (folder / QRELS).exists():
        raise InvalidRequest(f"{folder} already holds a dataset ({QRELS})", hint="name a folder, new or empty")
    existing = [name for name in (TOOLS, QUERIES) if (folder / name).exists()]
    if existing and not overwrite:
        raise InvalidRequest(
            f"{folder} already holds {' and '.join(existing)}",
            hint="name another folder, or add --force to lose what was edited there",
        )


def write_draft(draft: Draft, folder: Path, *, overwrite: bool = False) -> None:
    """Write both files, each atomically."""
    check_folder(folder, overwrite=overwrite)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / TOOLS, map(_tool_to_json, draft.items))
        _write(folder / QUERIES, map(_query_to_json, draft.queries))
    except OSError as error:
        raise SetupError(
            f"cannot write to {folder}: {error.strerror}", hint="name a folder that you may write to"
        ) from error


def _write(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    unfinished = path.with_name(f".{path.name}.unfinished")
    with unfinished.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    unfinished.replace(path)


def _tool_to_json(item: Item) -> Mapping[str, object]:
    row: dict[str, object] = {"id": item.key, "server": item.server, "name": item.name}
    row["description"] = item.description
    row["input_schema"] = item.input_schema
    row["output_schema"] = item.output_schema
    row["server_description"] = item.server_description or None
    return {name: value for name, value in row.items() if value is not None}


def _query_to_json(drafted: DraftedQuery) -> Mapping[str, object]:
    query = drafted.query
    row: dict[str, object] = {"id": query.id, "text": query.text, "kind": drafted.kind}
    row["gold_groups"] = [sorted(step) for step in query.steps]
    row["check"] = True
    return {**row, "note": drafted.note} if drafted.note else row
