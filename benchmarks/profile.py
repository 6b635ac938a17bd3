"""`python -m benchmarks profile`: where the CPU time of a search goes, by stage and by function.

The service and the baseline run with a sampler and answer the same requests in turn; a gateway runs in this
process.
"""

import asyncio
import json
import os
import signal
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import median

from benchmarks.flame import flame_graph
from benchmarks.gateway import open_file_gateway
from benchmarks.measurements import TimedSearch
from benchmarks.questions import queries_or_names, read_queries
from benchmarks.sampler import Profile, Sampler, Stack
from benchmarks.search import (
    Child,
    baseline_worker,
    open_search,
    require_folder,
    run_bench,
    search_server,
)
from toolscript.core.errors import InvalidRequest, SetupError
from toolscript.core.values import OnProgress, Progress
from toolscript.gateway.model import LocalQuery
from toolscript.gateway.settings import load_gateway_settings
from toolscript.tools.model.query import Strategy

Tables = dict[str, list[dict[str, object]]]

FUNCTIONS = 25
# What a process imports, reads and caches with its first requests is not profiled.
WARM_UP_QUERIES = 60
# Runs once, some seconds after a process has started.
ONCE = "toolscript/core/mcp/lazy_mount.py"
WRITTEN_SECONDS = 30.0
NATIVE, LOOP, OTHER = "native threads", "event loop", "other"

# Stages by where a function is defined. The innermost function that one of them names decides.
STAGES: Mapping[str, tuple[str, ...]] = {
    "embedding": ("toolscript/core/embedding/", "onnxruntime/"),
    "request": (
        "toolscript/core/retrieval/request.py",
        "toolscript/core/retrieval/terms.py",
        "toolscript/core/retrieval/language.py",
        "toolscript/core/retrieval/spelling.py",
        "toolscript/core/retrieval/curation.py",
        "toolscript/tools/curation.py",
        "toolscript/gateway/literal.py",
    ),
    "skills": ("toolscript/tools/skill_stage.py",),
    "Qdrant": ("toolscript/core/qdrant/", "toolscript/core/retrieval/namespaced.py", "grpc/"),
    "schemas": (
        "toolscript/tools/postgres/",
        "toolscript/core/postgres/",
        "toolscript/tools/hydration.py",
        "psycopg",
    ),
    "ranking": (
        "toolscript/core/retrieval/fusion.py",
        "toolscript/core/retrieval/rerank.py",
        "toolscript/core/retrieval/verdict.py",
        "toolscript/core/retrieval/text_verdict.py",
        "toolscript/tools/item_stage.py",
        "toolscript/tools/payload_cache.py",
        "toolscript/gateway/index.py",
    ),
    "search": ("toolscript/tools/", "toolscript/core/retrieval/", "toolscript/gateway/", "benchmarks/baseline.py"),
    "HTTP": (
        "toolscript/tools/http/",
        "toolscript/tools/schemas/",
        "toolscript/server/",
        "toolscript/core/web/",
        "toolscript/core/observability/",
        "fastapi/",
        "starlette/",
        "uvicorn/",
        "pydantic/",
    ),
    LOOP: ("asyncio/", "concurrent/", "threading.py", "toolscript/server/processes.py", "toolscript/cli/"),
}
# The longest first: `toolscript/tools/http/` before `toolscript/tools/`.
_PLACES = sorted(
    ((place, stage) for stage, places in STAGES.items() for place in places), key=lambda pair: -len(pair[0])
)


@dataclass(frozen=True)
class Profiled:
    """The profile of `requests` requests, and the wall time of the stages that the process reports."""

    profile: Profile
    requests: int
    wall_ms: Mapping[str, float]

    @property
    def stacks(self) -> Mapping[Stack, float]:
        return {**self.profile.spent_ms, (): self.profile.native_ms}

    def by_stage(self) -> Mapping[str, float]:
        spent = defaultdict[str, float](float)
        for stack, milliseconds in self.stacks.items():
            spent[stage_of(stack)] += milliseconds / self.requests
        return spent


def repeated(profile: Profile) -> Profile:
    """Leave out what a process does once."""
    return replace(
        profile,
        spent_ms={
            stack: spent
            for stack, spent in profile.spent_ms.items()
            if not any(name.startswith(ONCE) for name in stack)
        },
    )


def stage_of(stack: Stack) -> str:
    """Return the stage of a stack; a stack without functions is native code."""
    if not stack:
        return NATIVE
    named = (_stage_of_function(name) for name in reversed(stack))
    return next((stage for stage in named if stage), OTHER)


@cache
def _stage_of_function(name: str) -> str:
    return next((stage for place, stage in _PLACES if name.startswith(place)), "")


def functions_of(profiled: Profiled, count: int = FUNCTIONS) -> list[dict[str, object]]:
    """Return the functions with the most time of their own, C code that they call included."""
    own, inclusive = defaultdict[str, float](float), defaultdict[str, float](float)
    for stack, milliseconds in profiled.profile.spent_ms.items():
        if stack:
            own[stack[-1]] += milliseconds / profiled.requests
            for name in set(stack):
                inclusive[name] += milliseconds / profiled.requests
    ordered = sorted(own.items(), key=lambda pair: (-pair[1], pair[0]))
    return [
        {"function": name, "own CPU ms": round(spent, 3), "with callees": round(inclusive[name], 3)}
        for name, spent in ordered[:count]
    ]


def stage_rows(bare: Profiled | None, ours: Profiled) -> list[dict[str, object]]:
    """Return the stages from the largest to the smallest, with the baseline's, and a sum."""
    spent, without = ours.by_stage(), bare.by_stage() if bare else {}
    by_size = sorted({**without, **spent}, key=lambda name: (-max(spent.get(name, 0), without.get(name, 0)), name))
    pairs = [(stage, without.get(stage, 0.0), spent.get(stage, 0.0)) for stage in by_size]
    pairs.append(("whole", sum(without.values()), sum(spent.values())))
    return [_stage_row(stage, before if bare else None, after) for stage, before, after in pairs]


def _stage_row(stage: str, bare: float | None, ours: float) -> dict[str, object]:
    if bare is None:
        return {"stage": stage, "CPU ms": round(ours, 3)}
    return {
        "stage": stage,
        "bare CPU ms": round(bare, 3),
        "CPU ms": round(ours, 3),
        "added": round(ours - bare, 3),
    }


def wall_rows(bare: Profiled | None, ours: Profiled) -> list[dict[str, object]]:
    without = bare.wall_ms if bare else {}
    return [
        {"stage": stage, "bare p50 ms": round(without.get(stage, 0.0), 2), "p50 ms": round(spent, 2)}
        for stage, spent in ours.wall_ms.items()
    ]


def tables_of(bare: Profiled | None, ours: Profiled) -> Tables:
    samples = f"{ours.requests} requests, {ours.profile.samples} samples"
    tables: Tables = {f"CPU by stage, {samples}": stage_rows(bare, ours)}
    if ours.wall_ms:
        tables["wall time by stage, as reported"] = wall_rows(bare, ours)
    tables["CPU by function"] = functions_of(ours)
    return tables


class _SampledChild:
    """A child process with a sampler, and the search that it answers."""

    def __init__(self, child: Child, file: Path, search: TimedSearch) -> None:
        self._child, self._file, self._search = child, file, search
        self._stages: dict[str, list[float]] = {}
        self._requests = 0

    def begin(self) -> None:
        os.kill(self._child.pid, signal.SIGUSR1)

    async def run(self, text: str) -> None:
        self._requests += 1
        for stage, spent in (await self._search(text) or {}).items():
            self._stages.setdefault(stage, []).append(spent)

    async def end(self) -> Profiled:
        os.kill(self._child.pid, signal.SIGUSR1)
        until = time.monotonic() + WRITTEN_SECONDS
        while not self._file.exists():
            if time.monotonic() > until:
                raise SetupError("the profile was not written", hint="run it again with fewer requests")
            await asyncio.sleep(0.05)
        profile = Profile.from_json(json.loads(self._file.read_text("utf-8")))
        return Profiled(
            repeated(profile), self._requests, {name: median(spent) for name, spent in self._stages.items()}
        )


@asynccontextmanager
async def _opened(strategy: Strategy, texts: Sequence[str], folder: Path) -> AsyncIterator[list[_SampledChild]]:
    files = [folder / "bare.json", folder / "search.json"]
    async with (
        baseline_worker(strategy, texts, cached=False, sampled=files[0]) as bare,
        search_server(cached=False, sampled=files[1]) as ours,
        open_search(bare.port, strategy) as run_bare,
        open_search(ours.port, strategy) as run_ours,
    ):
        for text in texts[:WARM_UP_QUERIES]:
            await run_bare(text)
            await run_ours(text)
        yield [_SampledChild(bare, files[0], run_bare), _SampledChild(ours, files[1], run_ours)]


def profile_service(
    *, queries: Path | None, count: int, strategy: Strategy, flame: Path | None, on_progress: OnProgress
) -> Tables:
    async def run() -> tuple[Profiled, Profiled]:
        texts = _enough(await queries_or_names(queries, count + WARM_UP_QUERIES))
        measured = texts[WARM_UP_QUERIES:]
        with tempfile.TemporaryDirectory() as folder:
            async with _opened(strategy, texts, Path(folder)) as children:
                for child in children:
                    child.begin()
                for number, text in enumerate(measured, 1):
                    for child in children if number % 2 else children[::-1]:
                        await child.run(text)
                    on_progress(Progress("profile", number, len(measured)))
                bare, ours = [await child.end() for child in children]
                return bare, ours

    require_folder(flame)
    bare, ours = run_bench(run())
    _draw(flame, ours, f"CPU of a search of the service, {strategy}, ms per request")
    return tables_of(bare, ours)


def profile_gateway(
    tools: Path, queries: Path, *, count: int, model: str | None, flame: Path | None, on_progress: OnProgress
) -> Tables:
    async def run() -> Profiled:
        gateway, _ = await open_file_gateway(load_gateway_settings({"search_model": model}), tools, on_progress)
        texts, sampler = _enough(read_queries(queries, count + WARM_UP_QUERIES)), Sampler()
        for text in texts[:WARM_UP_QUERIES]:
            await gateway.search(LocalQuery(text))
        sampler.start()
        for text in texts[WARM_UP_QUERIES:]:
            await gateway.search(LocalQuery(text))
        return Profiled(sampler.stop(), len(texts) - WARM_UP_QUERIES, {})

    require_folder(flame)
    done = asyncio.run(run())
    _draw(flame, done, "CPU of a search of the gateway, ms per request")
    return tables_of(None, done)


def _enough(texts: Sequence[str]) -> Sequence[str]:
    """Return the texts, if any are left after the warm-up."""
    if len(texts) <= WARM_UP_QUERIES:
        raise InvalidRequest(
            f"{len(texts)} queries are too few", hint=f"give more than the {WARM_UP_QUERIES} of the warm-up"
        )
    return texts


def _draw(flame: Path | None, profiled: Profiled, title: str) -> None:
    if flame is not None:
        blocks = blocks_of(profiled.stacks)
        flame.write_text(flame_graph(blocks, title, profiled.requests), "utf-8")


def blocks_of(stacks: Mapping[Stack, float]) -> dict[Stack, float]:
    """Begin each stack with its stage, and leave out the functions of other stages that lead to it."""
    blocks = defaultdict[Stack, float](float)
    for stack, spent in stacks.items():
        stage = stage_of(stack)
        others = (place for place, name in enumerate(stack) if _stage_of_function(name) not in ("", stage))
        blocks[(stage, *stack[max(others, default=-1) + 1 :])] += spent
    return dict(blocks)
