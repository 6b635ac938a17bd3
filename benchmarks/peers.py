"""Other projects' tool search on a dataset, with their own code, beside the gateway.

Each peer has an environment of its own, which is created when it is first needed: packages from PyPI by name and
version. It runs as a subprocess that reads tools and queries as JSON lines, and writes a line of ids per query.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from toolscript.core.errors import InvalidRequest, SetupError
from toolscript.core.items import Item
from toolscript.core.retrieval.model import Matrix
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.values import OnProgress, Progress, silent
from toolscript.gateway.settings import load_gateway_settings
from toolscript_eval.baselines import Ranker
from toolscript_eval.dataset import Dataset, EvalReport, EvalRequest, EvalResult, SystemRole, read_dataset
from toolscript_eval.gateway import judge_gateway, open_disk_cached
from toolscript_eval.judging import evenly_spread, ranker_reports
from toolscript_eval.metrics import DEPTH
from toolscript_eval.report import noted, paired, report_text, report_to_json

SCRIPTS = Path(__file__).parent / "peer_scripts"
INSTALL_SECONDS, SEARCH_SECONDS = 600, 7_200
MAX_ANSWER = 1 << 20


@dataclass(frozen=True)
class Peer:
    """A system to compare with. `needs_model`: it gets the address of an endpoint with the gateway's model."""

    name: str
    package: str
    version: str
    script: str
    arguments: tuple[str, ...]
    mode: str
    needs_model: bool = False

    @property
    def note(self) -> str:
        return f"{self.package} {self.version}, {self.mode}"


PEERS = (
    Peer("fastmcp", "fastmcp", "4.1.2", "fastmcp_search.py", (), "BM25SearchTransform, which has no model"),
    Peer("ratel-ai", "ratel-ai", "0.12.0", "ratel_search.py", ("bm25",), "BM25, its default"),
    Peer(
        "ratel-ai-hybrid",
        "ratel-ai",
        "0.12.0",
        "ratel_search.py",
        ("hybrid",),
        "hybrid, with the gateway's model from an endpoint in place of its own",
        needs_model=True,
    ),
)


def named_peers(names: Sequence[str]) -> tuple[Peer, ...]:
    known = {peer.name: peer for peer in PEERS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InvalidRequest(f"there is no peer {unknown[0][:80]!r}", hint=f"peers: {', '.join(known)}")
    return tuple(known[name] for name in dict.fromkeys(names)) or PEERS


def bench_peers(request: EvalRequest, peers: Sequence[Peer], *, on_progress: OnProgress) -> EvalResult:
    """Evaluate the gateway, the baselines and the peers on a dataset; the report is one for `eval page`."""

    async def run() -> EvalResult:
        settings = load_gateway_settings({"search_model": request.model})
        dataset = evenly_spread(read_dataset(request.dataset), request.count)
        folder = settings.data_folder / "peers"
        async with open_disk_cached(settings, on_progress) as embedder:
            report = await judge_gateway(dataset, request, settings, embedder, on_progress)
            rankers = {peer.name: await ranker_of(peer, dataset, embedder, folder, on_progress) for peer in peers}
        notes = {peer.name: peer.note for peer in peers}
        measured = ranker_reports(
            rankers, dataset, seed=request.seed, role=SystemRole.PEER, notes=notes, on_progress=on_progress
        )
        whole = replace(noted(report, request), systems=(*report.systems, *measured))
        return peers_result(without_times(whole))

    return asyncio.run(run())


def without_times(report: EvalReport) -> EvalReport:
    """Return the report without milliseconds: a peer is asked through another interface, and is not timed."""
    engine = report.systems[0]
    kept = {
        name: measure for name, measure in engine.measures.items() if not name.startswith(("p50_ms", "p95_ms"))
    }
    return replace(report, systems=(replace(engine, measures=kept), *report.systems[1:]))


def peers_result(report: EvalReport) -> EvalResult:
    """Return the report with the difference of the gateway to each peer, query by query."""
    lines = [f"{'gateway less':20}nDCG@10, query by query"]
    for system in report.systems:
        difference = paired(system, report.systems[0], report.seed) if system.role is SystemRole.PEER else None
        if difference is not None:
            interval = f"({difference.low:+.4f} to {difference.high:+.4f})"
            lines.append(f"{system.system:20}{difference.value:+.4f}  {interval}   {system.note}")
    return EvalResult(report_to_json(report), "\n".join([report_text(report), "", *lines]))


async def ranker_of(
    peer: Peer, dataset: Dataset, embedder: Embedder, folder: Path, on_progress: OnProgress = silent
) -> Ranker:
    """Run a peer on all answerable queries of the dataset and return its answers as a ranker."""
    python = await asyncio.to_thread(environment_of, peer, folder, on_progress)
    queries = list(dict.fromkeys(query.text for query in dataset.queries if query.answerable))
    async with _endpoint(embedder) as url:
        command = [str(python), str(SCRIPTS / peer.script), str(DEPTH), *peer.arguments]
        command += [url] if peer.needs_model else []
        lines = [*map(_tool_line, dataset.items), *map(_query_line, queries)]
        answers = await _answers(peer, command, lines, len(queries), on_progress)
    return lambda text, depth: answers.get(text, ())[:depth]


def environment_of(peer: Peer, folder: Path, on_progress: OnProgress = silent) -> Path:
    """Return the Python of the peer's environment; create it if it is not there or not complete."""
    environment = folder / f"{peer.package}-{peer.version}-{sys.version_info.major}.{sys.version_info.minor}"
    python, complete = environment / "bin" / "python", environment / "complete"
    if complete.is_file():
        return python
    on_progress(Progress(f"install {peer.package}", 0, 1))
    shutil.rmtree(environment, ignore_errors=True)
    uv = [sys.executable, "-m", "uv"]
    _run([*uv, "venv", "--quiet", "--python", sys.executable, str(environment)])
    _run([*uv, "pip", "install", "--quiet", "--python", str(python), f"{peer.package}=={peer.version}"])
    complete.touch()
    on_progress(Progress(f"install {peer.package}", 1, 1))
    return python


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    if done.returncode:
        raise SetupError(
            f"cannot install a peer: {done.stderr.strip()[-500:]}",
            hint="packages come from PyPI: check the network, and that uv is installed",
        )


def _tool_line(item: Item) -> str:
    """Return a tool under the name that an agent would see it by, with its server before it."""
    name = f"{item.server}__{item.name}" if item.server else item.name
    schema = dict(item.input_schema) if item.input_schema else None
    tool = {"id": item.key, "name": name, "description": item.description, "input_schema": schema}
    return json.dumps({"tool": tool})


def _query_line(text: str) -> str:
    return json.dumps({"query": {"id": text, "text": text}})


async def _answers(
    peer: Peer, command: Sequence[str], lines: Iterable[str], count: int, on_progress: OnProgress
) -> Mapping[str, tuple[str, ...]]:
    """Send the lines and return the ids by query; a peer that fails or leaves queries out is an error."""
    answers: dict[str, tuple[str, ...]] = {}
    with tempfile.TemporaryFile() as errors:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            limit=MAX_ANSWER,
            env={**os.environ, "NO_PROXY": "127.0.0.1"},
        )
        try:
            async with asyncio.timeout(SEARCH_SECONDS):
                await _exchange(process, lines, answers, Progress(peer.name, 0, count), on_progress)
                code = await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        errors.seek(0)
        last_words = errors.read()[-500:].decode("utf-8", "replace").strip()
    if code or len(answers) != count:
        raise SetupError(f"{peer.name} answered {len(answers):,} of {count:,} queries: {last_words}")
    return answers


async def _exchange(
    process: asyncio.subprocess.Process,
    lines: Iterable[str],
    answers: dict[str, tuple[str, ...]],
    progress: Progress,
    on_progress: OnProgress,
) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        for line in lines:
            process.stdin.write(f"{line}\n".encode())
            await process.stdin.drain()
        process.stdin.close()
    except ConnectionError:
        # It ended early; its last words say why.
        return
    async for raw in process.stdout:
        answer = json.loads(raw)
        answers[str(answer["id"])] = tuple(map(str, answer["ids"]))
        on_progress(replace(progress, done=len(answers)))


async def _vectors(embedder: Embedder, texts: Sequence[str]) -> Matrix:
    return await embedder.embed_texts(texts)


@asynccontextmanager
async def _endpoint(embedder: Embedder) -> AsyncIterator[str]:
    """Serve the embedder as an OpenAI-compatible endpoint on loopback."""
    loop = asyncio.get_running_loop()

    class Embeddings(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            texts = [request["input"]] if isinstance(request["input"], str) else request["input"]
            vectors = asyncio.run_coroutine_threadsafe(_vectors(embedder, texts), loop).result()
            rows = [{"index": index, "embedding": vector.tolist()} for index, vector in enumerate(vectors)]
            body = json.dumps({"data": rows, "model": "same"}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Embeddings)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1/embeddings"
    finally:
        await asyncio.to_thread(server.shutdown)
        server.server_close()
