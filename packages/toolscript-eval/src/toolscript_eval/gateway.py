"""`eval` of the gateway: its search over a dataset, drafts, fitted weights and the quality page."""

import asyncio
import json
import shlex
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from toolscript.core.embedding.cache import CachedEmbedder, DiskCachedEmbedder, VectorStore
from toolscript.core.embedding.items import embed_items
from toolscript.core.embedding.model_runtime import is_installed
from toolscript.core.embedding.scale import measure_scale
from toolscript.core.embedding.static_table import BUILTIN, StaticEmbedder
from toolscript.core.errors import EmbedderUnavailable, InvalidRequest, NotFound, SetupError
from toolscript.core.items import Item, RefusedItem, tool_id
from toolscript.core.retrieval.model import Matrix, Vector
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.retrieval.request import MAX_TEXTS
from toolscript.core.retrieval.weights import DEFAULT_WEIGHTS, PARTS, RankingWeights, weights_to_json
from toolscript.core.tokens import Count, count_if_possible
from toolscript.core.values import OnProgress, Progress
from toolscript.gateway.capabilities import Capabilities, default_capabilities
from toolscript.gateway.index import Analysed, LocalIndex, analyse
from toolscript.gateway.model import DEFAULT_LIMIT, LocalAnswer, LocalHit, LocalQuery, Need
from toolscript.gateway.runtime import cache_folder, require_model
from toolscript.gateway.search import LocalSearch
from toolscript.gateway.session import ask
from toolscript.gateway.settings import NO_MODEL, GatewaySettings, load_gateway_settings
from toolscript.tools.catalog.files import read_items
from toolscript_eval.baselines import baselines_of
from toolscript_eval.dataset import (
    Dataset,
    Draft,
    EngineAnswer,
    EvalReport,
    EvalRequest,
    EvalResult,
    Shown,
    WrittenDraft,
    WrittenPage,
    check_folder,
    read_dataset,
    write_draft,
)
from toolscript_eval.drafting import ModelParaphrases, Paraphrase, draft
from toolscript_eval.fitting import Case, HeldOut, fit, hold_out
from toolscript_eval.judging import evenly_spread, judge
from toolscript_eval.metrics import DEPTH
from toolscript_eval.page import quality_page, rows_of
from toolscript_eval.plot import has_verdicts, quality_plot, verdict_plot
from toolscript_eval.report import earlier_report, report_from_json, result_of, weights_of
from toolscript_eval.tokens import answer_tokens

if TYPE_CHECKING:
    from toolscript.gateway.model import Gateway


GATEWAY = "gateway"
SEPARATOR = ":"
HINT = "give files that `toolscript-eval --out FILE` wrote"


def evaluate(request: EvalRequest, *, on_progress: OnProgress) -> EvalResult:
    async def run() -> EvalResult:
        before = earlier_report(request)
        settings = load_gateway_settings({"search_model": request.model})
        dataset = evenly_spread(read_dataset(request.dataset, distractors=request.distractors), request.count)
        if request.model is None and not is_installed():
            # What searches do without a model runtime.
            settings = replace(settings, search_model=BUILTIN)
        async with open_disk_cached(settings, on_progress) as embedder:
            report = await judge_gateway(dataset, request, settings, embedder, on_progress)
            return result_of(report, request, before)

    return asyncio.run(run())


async def judge_gateway(
    dataset: Dataset,
    request: EvalRequest,
    settings: GatewaySettings,
    embedder: Embedder,
    on_progress: OnProgress,
) -> EvalReport:
    """Judge the gateway. It embeds each query itself, because its time is measured; the others share a cache."""
    weights = weights_of(request, replace(DEFAULT_WEIGHTS, meaning=settings.search_alpha))
    prepared = PreparedItems(embedder)
    shared = CachedEmbedder(embedder, size=len(dataset.queries) * MAX_TEXTS)
    parts = ablated_searches(weights) if request.ablate else {}
    return await judge(
        GatewayEngine(gateway_search(weights), embedder, prepared, count_if_possible()),
        dataset,
        model=embedder.model.name,
        baselines=await baselines_of(dataset, shared, on_progress),
        ablated={part: GatewayEngine(search, shared, prepared) for part, search in parts.items()},
        seed=request.seed,
        by=request.by,
        without_gold=request.without_gold,
        on_progress=on_progress,
    )


@asynccontextmanager
async def open_disk_cached(settings: GatewaySettings, on_progress: OnProgress) -> AsyncIterator[Embedder]:
    """Open the gateway's model; vectors of items are cached on disk unless the cache is off."""
    require_model(settings)
    if settings.search_model == NO_MODEL:
        raise InvalidRequest("eval measures dense retrieval, too, and needs a model", hint="give another --model")
    if settings.search_model == BUILTIN:
        yield StaticEmbedder()
        return
    from toolscript.core.embedding.embedder import LocalEmbedder
    from toolscript.core.embedding.engine import Device

    model = await asyncio.to_thread(
        LocalEmbedder,
        settings.search_model,
        device=Device(settings.search_device),
        downloads=settings.data_folder / "models",
    )
    try:
        if settings.search_no_cache:
            yield model
        else:
            store = VectorStore(cache_folder(settings) / "eval", model.model)
            yield DiskCachedEmbedder(model, store, on_progress)
    finally:
        model.close()


def gateway_search(weights: RankingWeights) -> LocalSearch:
    return LocalSearch(default_capabilities(), weights)


def ablated_searches(weights: RankingWeights) -> Mapping[str, LocalSearch]:
    """Return the search with one part off, by the name of the part."""
    off = {part: gateway_search(weights.without(part)) for part in PARTS}
    return {**off, "general tools": LocalSearch(Capabilities((), {}), weights)}


class PreparedItems:
    """Terms and vectors of items by key, computed once for all engines and all parts of a catalog.

    Without an embedder there are no vectors.
    """

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder
        self._analysed: dict[str, Analysed] = {}
        self._vectors: dict[str, Vector] = {}

    async def of(self, items: Sequence[Item]) -> tuple[list[Analysed], Matrix | None]:
        new = [item for item in items if item.key not in self._analysed]
        self._analysed |= {item.key: analyse(item) for item in new}
        analysed = [self._analysed[item.key] for item in items]
        if self._embedder is None:
            return analysed, None
        self._vectors |= dict(zip((item.key for item in new), await embed_items(self._embedder, new), strict=True))
        rows = np.array([self._vectors[item.key] for item in items], dtype=np.float32)
        return analysed, rows.reshape(len(items), self._embedder.model.dimensions)


class GatewayEngine:
    """All items in memory, as in a gateway whose servers are all connected."""

    name = GATEWAY

    def __init__(
        self, search: LocalSearch, embedder: Embedder | None, prepared: PreparedItems, count: Count | None = None
    ) -> None:
        self._count = count
        self._keys: Mapping[str, str] = {}
        self._search = search
        self._prepared = prepared
        # A query is embedded once, though it is asked twice.
        search.embedder = None if embedder is None else CachedEmbedder(embedder, size=MAX_TEXTS)

    async def load(self, items: Sequence[Item]) -> None:
        analysed, vectors = await self._prepared.of(items)
        if self._search.embedder is not None and self._search.scale is None:
            self._search.scale = await measure_scale(self._search.embedder)
        self._search.index = LocalIndex(items, analysed, vectors).warm()
        self._keys = {tool_id(item.server, item.name): item.key for item in items}

    async def answer(self, query: str) -> EngineAnswer:
        answer = await self._search.search(LocalQuery(query, limit=DEPTH, threshold=0.0, kind=None))
        if self._search.index.model_is_used and not answer.semantic:
            raise EmbedderUnavailable(
                f"only sparse retrieval answered: {self._search.model_note}", hint="try again"
            )
        shown = await self._search.search(LocalQuery(query, kind=None))
        return engine_answer(answer, self._count, self._keys, shown)


def engine_answer(
    answer: LocalAnswer,
    count: Count | None = None,
    keys: Mapping[str, str] | None = None,
    shown: LocalAnswer | None = None,
) -> EngineAnswer:
    """Convert a gateway's answer. `keys` are those of the dataset by id: twins rank beside their hit.

    `shown` is the answer at default settings.
    """
    confidence = answer.hits[0].parts.probability if answer.hits else None
    tools = [
        {"tool": tool_id(hit.item.server, hit.item.name), "description": hit.item.description}
        for hit in answer.hits[:DEFAULT_LIMIT]
    ]
    ranked = _keys_of(answer.hits, keys or {})
    return EngineAnswer(
        tuple(ranked[:DEPTH]),
        confidence,
        answer.good_match,
        answer.milliseconds,
        answer_tokens(tools, count),
        fit=answer.fit,
        shown=None if shown is None else _shown(shown, keys or {}),
    )


def _shown(answer: LocalAnswer, keys: Mapping[str, str]) -> Shown:
    of_steps = [hit for step in answer.steps for hit in step.hits or step.near_misses]
    guesses = () if answer.all_hits else answer.near_misses
    best = max((hit.confidence for hit in (*answer.hits, *answer.near_misses)), default=0.0)
    return Shown(frozenset(_keys_of((*answer.hits, *of_steps, *guesses), keys)), answer.good_match, best)


def _keys_of(hits: Sequence[LocalHit], keys: Mapping[str, str]) -> list[str]:
    return [key for hit in hits for key in (hit.item.key, *(keys.get(twin, twin) for twin in hit.also))]


def make_draft(
    folder: Path,
    *,
    tools: Path | None,
    flags: Mapping[str, object],
    per_kind: int,
    seed: int,
    force: bool,
    on_progress: OnProgress,
) -> WrittenDraft:
    """Draft a dataset. Check the folder and the settings first: servers and a model take time."""
    check_folder(folder, overwrite=force)
    settings = load_gateway_settings(flags)
    _check_text_model(settings)
    items, refused = (_own_items(flags, on_progress), 0) if tools is None else _items_of_file(tools)
    made = asyncio.run(_draft(items, settings, per_kind, seed, on_progress))
    write_draft(made, folder, overwrite=force)
    return WrittenDraft(str(folder), len(made.items), made.counts, refused)


def _own_items(flags: Mapping[str, object], on_progress: OnProgress) -> Sequence[Item]:
    async def all_items(gateway: "Gateway") -> Sequence[Item]:
        return await gateway.items()

    return ask(all_items, flags=flags, need=Need(model=False), on_progress=on_progress)


def _items_of_file(path: Path) -> tuple[Sequence[Item], int]:
    lines = list(read_items(path))
    items = [line for line in lines if not isinstance(line, RefusedItem)]
    return items, len(lines) - len(items)


async def _draft(
    items: Sequence[Item], settings: GatewaySettings, per_kind: int, seed: int, on_progress: OnProgress
) -> Draft:
    async with _paraphrases(settings) as paraphrase:
        return await draft(items, seed=seed, per_kind=per_kind, paraphrase=paraphrase, on_progress=on_progress)


def _check_text_model(settings: GatewaySettings) -> None:
    if bool(settings.text_model) != bool(settings.text_url):
        raise SetupError(
            "a text model needs its name and the address of its endpoint",
            hint="give both --text-model and --text-url (TOOLSCRIPT_TEXT_MODEL, TOOLSCRIPT_TEXT_URL), or neither",
        )


@asynccontextmanager
async def _paraphrases(settings: GatewaySettings) -> AsyncIterator[Paraphrase | None]:
    if not settings.text_model:
        yield None
        return
    try:
        from toolscript.core.llm.openai import OpenAITextModel
    except ImportError as error:
        raise SetupError("a text model needs the package openai", hint="pip install openai") from error
    model = OpenAITextModel(settings.text_url, settings.text_model, api_key=settings.text_api_key)
    try:
        yield ModelParaphrases(model)
    finally:
        await model.close()


def fit_ranking_weights(
    datasets: Sequence[str],
    *,
    model: str | None,
    count: int | None,
    held_out: Path | None,
    on_progress: OnProgress,
) -> EvalResult:
    """`datasets` are folders, or `FOLDER:DISTRACTORS`."""

    async def run() -> EvalResult:
        settings = load_gateway_settings({"search_model": model})
        sets = [evenly_spread(_read(dataset), count) for dataset in datasets]
        if len({_title(dataset) for dataset in sets}) < len(sets):
            raise InvalidRequest("two datasets have the same name", hint="give their folders different names")
        async with open_disk_cached(settings, on_progress) as embedder:
            cases = {_title(dataset): await cases_of(dataset, embedder, on_progress) for dataset in sets}
        groups = {_title(dataset): dataset.name for dataset in sets}
        tried = hold_out(cases, groups) if len(set(groups.values())) > 1 else []
        fitted = fit(cases)
        if held_out is not None:
            _write_held_out(held_out, tried, groups)
        return EvalResult(weights_to_json(fitted), _text(fitted, tried))

    return asyncio.run(run())


def _read(dataset: str) -> Dataset:
    folder, _, distractors = dataset.partition(SEPARATOR)
    return read_dataset(Path(folder), distractors=Path(distractors) if distractors else None)


def _title(dataset: Dataset) -> str:
    return f"{dataset.name} + {dataset.distractors}" if dataset.distractors else dataset.name


async def cases_of(dataset: Dataset, embedder: Embedder | None, on_progress: OnProgress) -> list[Case]:
    """Return the cases of a dataset; without an embedder, sparse retrieval alone fills both kinds of scores."""
    search = gateway_search(DEFAULT_WEIGHTS)
    by_words = gateway_search(DEFAULT_WEIGHTS)
    cached = embedder and CachedEmbedder(embedder, size=16)
    await GatewayEngine(search, cached, PreparedItems(embedder)).load(dataset.items)
    by_words.index = search.index
    keys = {row: item.key for row, item in enumerate(dataset.items)}
    cases = []
    for query in dataset.queries:
        request, fused, features = await search.fuse_scores(query.text, DEFAULT_WEIGHTS)
        _, sparse_fused, sparse_features = await by_words.fuse_scores(query.text, DEFAULT_WEIGHTS)
        cases.append(Case(query, request, fused, sparse_fused, features, sparse_features, keys))
        on_progress(Progress(f"rank {_title(dataset)}", len(cases), len(dataset.queries)))
    return cases


def _write_held_out(folder: Path, tried: Sequence[HeldOut], groups: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for held_out in tried:
        data = {**weights_to_json(held_out.weights), "held_out": groups[held_out.set]}
        (folder / f"{groups[held_out.set]}.json").write_text(json.dumps(data, indent=2) + "\n", "utf-8")


def _text(fitted: RankingWeights, tried: Sequence[HeldOut]) -> str:
    lines = [f"{'set':34} {'held out':>9} {'as it is':>9}   nDCG@10 of the ranking alone"] if tried else []
    lines += [f"{held_out.set:34} {held_out.ndcg:9.4f} {held_out.by_default:9.4f}" for held_out in tried]
    return "\n".join([*lines, "", json.dumps(weights_to_json(fitted), indent=2)])


def make_page(reports: Sequence[Path], *, out: Path) -> WrittenPage:
    """Write the page and its plots, after all were rendered."""
    plot, verdicts = _plots_beside(out, reports)
    read = [_report(path) for path in reports]
    drawn = [verdicts] if has_verdicts(read) else []
    link = verdicts.name if drawn else None
    page = quality_page(read, command=_command(reports, out), plot=plot.name, verdict_plot=link)
    pictures = {plot: quality_plot(read), **{path: verdict_plot(read) for path in drawn}}
    for path, text in {**pictures, out: page}.items():
        write_file(path, text)
    shown = str(verdicts) if drawn else None
    return WrittenPage(str(out), str(plot), shown, sets=len(rows_of(read)), reports=len(read))


def _plots_beside(out: Path, reports: Sequence[Path]) -> tuple[Path, Path]:
    plot = out.with_suffix(".svg") if out.name else out
    if not out.name or out.is_dir() or plot == out:
        raise InvalidRequest(f"{out} is no name for a page", hint="give a file like docs/quality.md")
    verdicts = plot.with_stem(f"{plot.stem}-verdict")
    taken = {path.resolve() for path in reports} & {path.resolve() for path in (out, plot, verdicts)}
    if taken:
        raise InvalidRequest(f"{out} would overwrite a report", hint="give another name to the page")
    return plot, verdicts


def _report(path: Path) -> EvalReport:
    try:
        data = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise NotFound(f"cannot read {path}: {error.strerror}", hint=HINT) from None
    except ValueError as error:
        raise InvalidRequest(f"{path} is not JSON: {error}", hint=HINT) from None
    if not isinstance(data, dict):
        raise InvalidRequest(f"{path} holds no report", hint=HINT)
    try:
        return report_from_json(data)
    except InvalidRequest as error:
        raise InvalidRequest(f"{path}: {error.message}", hint=HINT) from None


def _command(reports: Sequence[Path], out: Path) -> str:
    return shlex.join(["toolscript-eval", "page", *map(_public_path, reports), "--out", _public_path(out)])


def _public_path(path: Path) -> str:
    """Return the path for the page, without folders of this machine."""
    here, there = Path.cwd().resolve(), path.resolve()
    return there.relative_to(here).as_posix() if there.is_relative_to(here) else path.name


def write_file(path: Path, text: str) -> None:
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        unfinished.write_text(text, "utf-8")
        unfinished.replace(path)
    except OSError as error:
        raise InvalidRequest(
            f"cannot write {path}: {error.strerror}", hint="give a file in a folder that is there"
        ) from None
