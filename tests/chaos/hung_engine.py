"""An engine hangs under requests to all capabilities: what they answer before, meanwhile and afterwards.

By hand, on engines of its own that it starts, stops and ends:

    python -m tests.chaos.hung_engine --engine qdrant --seconds 30
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles

import httpx2

from tests.conftest import Installation, fresh_installation
from tests.e2e import catalog_files
from tests.e2e.commands import run_here, serving
from tests.support.own_engines import MONGO, POSTGRES, QDRANT, OwnEngines, own_engines
from toolscript.core.postgres.migrate import upgrade

RATE = 8.0
BEFORE_SECONDS, AFTER_SECONDS = 8.0, 6.0
# Until the breaker opens: half a second of silence, a probe of 1.5 s, and the beginning of the next request.
OPENS_WITHIN_SECONDS = 2.75
WHOLE_WITHIN_SECONDS = 2.0
ITEMS = 40
BYPASS = {"X-Debug-Bypass-Auth": "1"}
DOCUMENT = {"id": "rotation", "title": "Keys", "text": "Keys of the service are rotated every month."}


@dataclass(frozen=True)
class Request:
    """`engines`: those that it asks; without one of `needs` it fails, without the others it is degraded."""

    name: str
    method: str
    path: str
    body: Mapping[str, object] | None
    needs: frozenset[str]
    engines: frozenset[str]


def _request(
    name: str, method: str, path: str, text: str = "", *, needs: Sequence[str], uses: Sequence[str] = ()
) -> Request:
    body = {"query": text} if text else None
    return Request(name, method, path, body, frozenset(needs), frozenset((*needs, *uses)))


REQUESTS = (
    _request("tools", "POST", "/api/v1/tools/search", "create an invoice", needs=[QDRANT], uses=[POSTGRES]),
    _request("documents", "POST", "/api/v1/documents/search", "rotate keys", needs=[QDRANT]),
    _request("knowledge", "POST", "/api/v1/knowledge/search", "rotate keys", needs=[QDRANT, MONGO]),
    _request("tools list", "GET", "/api/v1/tools?limit=1", needs=[POSTGRES]),
    _request("skills list", "GET", "/api/v1/skills?limit=1", needs=[POSTGRES]),
    _request("sources list", "GET", "/api/v1/knowledge/sources?limit=1", needs=[MONGO]),
    _request("alive", "GET", "/livez", needs=[]),
    _request("ready", "GET", "/readyz", needs=[]),
)


@dataclass(frozen=True)
class Answer:
    """`at`: when the request was sent, in seconds since the engine was stopped."""

    request: Request
    at: float
    took: float
    status: int
    degraded: bool
    retry_after: str | None
    body: str


@dataclass(frozen=True)
class Run:
    engine: str
    stopped_seconds: float
    answers: Sequence[Answer]

    def before(self, request: Request) -> list[Answer]:
        return self._of(request, float("-inf"), -1.0)

    def meanwhile(self, request: Request) -> list[Answer]:
        return self._of(request, 0.0, self.stopped_seconds)

    def once_open(self, request: Request) -> list[Answer]:
        return self._of(request, OPENS_WITHIN_SECONDS, self.stopped_seconds - 0.1)

    def whole_again(self, request: Request) -> list[Answer]:
        return self._of(request, self.stopped_seconds + WHOLE_WITHIN_SECONDS, float("inf"))

    def _of(self, request: Request, begin: float, end: float) -> list[Answer]:
        return [answer for answer in self.answers if answer.request is request and begin <= answer.at < end]

    def table(self) -> str:
        lines = [f"{self.engine} stopped for {self.stopped_seconds:.0f} s at {RATE:.0f} requests/s"]
        for request in REQUESTS:
            parts = (
                self.before(request),
                self.meanwhile(request),
                self.once_open(request),
                self.whole_again(request),
            )
            lines.append(f"{request.name:13}" + " | ".join(_summary(part) for part in parts))
        return "\n".join(lines)


def _summary(answers: Sequence[Answer]) -> str:
    said = Counter(f"{answer.status}{'d' if answer.degraded else ''}" for answer in answers)
    return f"{dict(sorted(said.items()))} p95 {p95(answers) * 1000:.0f} max {slowest(answers) * 1000:.0f} ms"


def p95(answers: Sequence[Answer]) -> float:
    took = [answer.took for answer in answers]
    return quantiles(took, n=20, method="inclusive")[-1] if len(took) > 1 else sum(took)


def slowest(answers: Sequence[Answer]) -> float:
    return max((answer.took for answer in answers), default=0.0)


async def measure(url: str, engines: OwnEngines, engine: str, seconds: float) -> Run:
    async with httpx2.AsyncClient(base_url=url, timeout=60, trust_env=False, headers=BYPASS) as client:
        for request in REQUESTS:
            for _ in range(3):
                await _send(client, request, 0.0)
        answers: list[asyncio.Task[Answer]] = []
        stops_at = time.monotonic() + BEFORE_SECONDS

        async def keep_asking() -> None:
            turn = 0
            while True:
                request = REQUESTS[turn % len(REQUESTS)]
                answers.append(asyncio.create_task(_send(client, request, stops_at)))
                turn += 1
                due = stops_at - BEFORE_SECONDS + turn / RATE
                await asyncio.sleep(due - time.monotonic())

        asking = asyncio.create_task(keep_asking())
        await asyncio.sleep(stops_at - time.monotonic())
        with engines.stopped(engine):
            await asyncio.sleep(stops_at + seconds - time.monotonic())
        await asyncio.sleep(WHOLE_WITHIN_SECONDS + AFTER_SECONDS)
        asking.cancel()
        return Run(engine, seconds, await asyncio.gather(*answers))


async def _send(client: httpx2.AsyncClient, request: Request, stops_at: float) -> Answer:
    began = time.monotonic()
    answer = await client.request(request.method, request.path, json=request.body)
    took = time.monotonic() - began
    degraded = (
        request.body is not None and answer.status_code == 200 and bool(answer.json()["metadata"]["degraded"])
    )
    retry_after = answer.headers.get("retry-after")
    return Answer(request, began - stops_at, took, answer.status_code, degraded, retry_after, answer.text[:300])


@contextmanager
def filled(engines: OwnEngines, model_folder: str) -> Iterator[Installation]:
    """Yield an installation with some tools, a document and a source of the library."""
    settings = engines.settings
    url = settings.postgres_url.get_secret_value()
    upgrade(url)
    with fresh_installation(settings, url, model_folder) as fresh, tempfile.TemporaryDirectory() as folder:
        own = {
            "TOOLSCRIPT_ENVIRONMENT": "development",
            "TOOLSCRIPT_DEBUG_BYPASS_AUTH": "true",
            "TOOLSCRIPT_DEADLINE_SECONDS": "10",
            "TOOLSCRIPT_SKILL_COPY": "true",
            "TOOLSCRIPT_LOG_LEVEL": "warning",
        }
        installation = Installation({**fresh.environment, **own})
        catalog = catalog_files.write(Path(folder) / "items.jsonl", catalog_files.rows(ITEMS))
        shelf = Path(folder) / "shelf"
        shelf.mkdir()
        (shelf / "keys.md").write_text("# Rotation of keys\n\nKeys are rotated every month.\n")
        mine = installation.environment
        run_here(mine, "sync", str(catalog))
        run_here(mine, "worker", "--drain")
        run_here(mine, "ingest", str(shelf))
        yield installation


@contextmanager
def served(installation: Installation) -> Iterator[str]:
    with serving(installation.environment) as url:
        answer = httpx2.put(
            f"{url}/api/v1/documents",
            content=json.dumps(DOCUMENT) + "\n",
            headers={**BYPASS, "content-type": "application/x-ndjson"},
            timeout=60,
            trust_env=False,
        )
        assert answer.status_code == 200, answer.text
        yield url


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--engine", choices=(QDRANT, POSTGRES, MONGO), action="append")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--model", required=True, help="folder of an embedding model")
    options = parser.parse_args()
    with own_engines() as engines, filled(engines, options.model) as installation, served(installation) as url:
        for engine in options.engine or (QDRANT, POSTGRES, MONGO):
            sys.stdout.write(f"{asyncio.run(measure(url, engines, engine, options.seconds)).table()}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
