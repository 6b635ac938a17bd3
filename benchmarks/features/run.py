"""Runs the comparison: every server directly, then all of them through one gateway, with each client."""

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from benchmarks.features.compare import Finding, Place, compare, keyed
from benchmarks.features.names import at_all, at_joint, describe_steps
from benchmarks.features.other_clients import INSPECTED, observe_in_inspector, observe_in_typescript
from benchmarks.features.python_client import observe
from benchmarks.features.servers import STEPS, Server, configured_servers, install, pinned_servers
from benchmarks.features.steps import LISTS, Json, Observed, Step, Target, follow_up_steps, list_steps
from toolscript.core.errors import SetupError
from toolscript.core.values import OnProgress, Progress

PYTHON, TYPESCRIPT, INSPECTOR = "python", "typescript", "inspector"
CLIENTS = (PYTHON, TYPESCRIPT, INSPECTOR)
READY_SECONDS = 180.0
_MADE = count(1)
CANCELLED, CANCELLATION = "notifications/cancelled", "cancellation"
_TOOLSCRIPT = (sys.executable, "-m", "toolscript")

Observe = Callable[[Target, Sequence[Step]], Awaitable[dict[str, Json]]]


@dataclass(frozen=True)
class Endpoint:
    """One way to a gateway; `joint`: the endpoint with three tools for all."""

    name: str
    target: Target
    joint: bool


@dataclass(frozen=True)
class Reference:
    """What one client sees of one server directly, and the steps that showed it."""

    server: Server
    steps: Sequence[Step]
    observed: Observed


async def compare_features(
    config: Path | None, folder: Path, clients: Sequence[str], on_progress: OnProgress
) -> list[Finding]:
    """Compare the servers of a config file, or those that are pinned here, which npm installs into `folder`."""
    packages = await asyncio.to_thread(install, folder)
    with tempfile.TemporaryDirectory(prefix="toolscript-features-") as work:
        place = Path(work)
        servers = configured_servers(config) if config else pinned_servers(packages, place)
        observers = _observers(folder)
        references = {client: [*(await _directly(servers, client, observers, on_progress))] for client in clients}
        async with _gateway(servers, place) as endpoints:
            findings: list[Finding] = []
            # For a while after a cancelled call, nobody can be asked a question of its server.
            for last in (False, True):
                for number, endpoint in enumerate(endpoints):
                    for client in clients:
                        on_progress(Progress(f"{client} at {endpoint.name}", number, len(endpoints)))
                        some = [_part(reference, last=last) for reference in references[client]]
                        if not last or any(reference.steps for reference in some):
                            findings += await _through(endpoint, client, some, observers[client])
            return findings


def _part(reference: Reference, *, last: bool) -> Reference:
    steps = [step for step in reference.steps if (step.feature == CANCELLATION) == last]
    own = {id_: outcome for id_, outcome in reference.observed.items() if not last or ": server" not in id_}
    return Reference(reference.server, steps, own)


def _observers(folder: Path) -> Mapping[str, Observe]:
    return {
        PYTHON: lambda target, steps: observe(target, lambda _observed: steps),
        TYPESCRIPT: lambda target, steps: observe_in_typescript(folder, target, steps),
        INSPECTOR: lambda target, steps: observe_in_inspector(folder, target, steps),
    }


async def _directly(
    servers: Sequence[Server], client: str, observers: Mapping[str, Observe], on_progress: OnProgress
) -> list[Reference]:
    references = []
    for number, server in enumerate(servers):
        on_progress(Progress(f"{client} with {server.name}", number, len(servers)))
        own = STEPS.get(server.name, ())

        def steps(observed: Observed, own: Sequence[Step] = own) -> list[Step]:
            return [*list_steps(), *(follow_up_steps(observed) if "templates: list" in observed else ()), *own]

        if client == PYTHON:
            observed = await observe(server.target, steps)
        else:
            lists = await observers[client](server.target, list_steps())
            asked = steps(lists) if client == TYPESCRIPT else _some(steps(lists))
            rest = [step for step in asked if step.id not in lists]
            observed = {**lists, **await observers[client](server.target, rest)}
        asked = [step for step in steps(observed) if step.id in observed]
        references.append(Reference(server, asked, _with_received(observed, server, 0)))
    return references


def _some(steps: Sequence[Step]) -> list[Step]:
    """Return the lists and the first request of each kind: the Inspector starts anew for each."""
    first: dict[str, Step] = {}
    for step in steps:
        if step.method in INSPECTED and step.feature in (*LISTS, "calls", "errors"):
            first.setdefault(step.method, step)
    return [*first.values()]


def _with_received(observed: dict[str, Json], server: Server, since: int) -> dict[str, Json]:
    """Add to a step that was cancelled whether the server heard of it."""
    received = CANCELLED in server.received()[since:]
    return {
        id_: {**outcome, "error": {"code": "cancelled, and the server was told" if received else "cancelled"}}
        if (outcome.get("error") or {}).get("code") == "cancelled"
        else outcome
        for id_, outcome in observed.items()
    }


async def _through(
    endpoint: Endpoint, client: str, references: Sequence[Reference], observe_with: Observe
) -> Iterator[Finding]:
    before = {reference.server.name: len(reference.server.received()) for reference in references}
    lists = [step for step in list_steps() if any(step in reference.steps for reference in references)]
    steps = [*lists, *(step for reference in references for step in _steps_at(endpoint, client, reference))]
    observed = await observe_with(endpoint.target, steps)
    findings: list[Finding] = []
    for reference in references:
        name = reference.server.name
        seen = _with_received(observed, reference.server, before[name])
        place = Place(name, endpoint.name, client, endpoint.joint)
        # To describe all tools one by one takes the Inspector long.
        skipped = "tools/list" if endpoint.joint and client == INSPECTOR else ""
        steps = [step for step in reference.steps if step.method != skipped]
        findings += compare(place, steps, reference.observed, seen)
    return iter(findings)


def _steps_at(endpoint: Endpoint, client: str, reference: Reference) -> list[Step]:
    name, at = reference.server.name, at_joint if endpoint.joint else at_all
    own = [keyed(name, at(name, _new(step))) for step in reference.steps if step.key != "list"]
    if not endpoint.joint or client == INSPECTOR or not any(step.key == "list" for step in reference.steps):
        return own
    tools: Any = (reference.observed["tools: list"].get("result") or {}).get("tools", ())
    return [*(keyed(name, step) for step in describe_steps(name, tools)), *own]


def _new(step: Step) -> Step:
    """Return a step that changes a list with another name each time: the same would change nothing."""
    if not step.wait_for:
        return step
    arguments = {**step.params["arguments"], "name": f"made-{next(_MADE)}.gz"}
    return replace(step, params={**step.params, "arguments": arguments})


@asynccontextmanager
async def _gateway(servers: Sequence[Server], work: Path) -> AsyncIterator[list[Endpoint]]:
    """Run a gateway with these servers, and yield the ways to it."""
    home = work / "home"
    home.mkdir()
    entries = {server.name: server.entry for server in servers}
    (home / ".toolscript.json").write_text(json.dumps({"mcpServers": entries}), "utf-8")
    own = {name: value for name, value in os.environ.items() if not name.startswith("TOOLSCRIPT_")}
    env = {**own, "HOME": str(home), "TOOLSCRIPT_SEARCH_MODEL": "builtin", "TOOLSCRIPT_GATEWAY_IDLE_SECONDS": "0"}
    command = [*_TOOLSCRIPT, "gateway", "start", "--port", "0", "--json"]
    process = await asyncio.create_subprocess_exec(*command, env=env, cwd=home, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        url = json.loads(await process.stdout.readline())["url"]
        await asyncio.to_thread(_until_ready, url)
        yield [
            Endpoint("/mcp/all", Target(url=f"{url}/mcp/all"), joint=False),
            Endpoint("mcp --direct", Target((*_TOOLSCRIPT, "mcp", "--direct"), env), joint=False),
            Endpoint("/mcp", Target(url=f"{url}/mcp"), joint=True),
            Endpoint("mcp", Target((*_TOOLSCRIPT, "mcp"), env), joint=True),
        ]
    finally:
        process.terminate()
        await process.wait()


def _until_ready(url: str) -> None:
    ends_at = time.monotonic() + READY_SECONDS
    while time.monotonic() < ends_at:
        with urlopen(f"{url}/health", timeout=READY_SECONDS) as answer:
            health = json.loads(answer.read())
        if all(server["status"] != "starting" for server in health["servers"]):
            failed = [server["name"] for server in health["servers"] if server["status"] == "failed"]
            if failed:
                raise SetupError(f"these servers do not start: {', '.join(failed)}")
            return
        time.sleep(0.5)
    raise SetupError(f"not all servers were ready within {READY_SECONDS:g} seconds")
