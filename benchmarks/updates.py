"""`python -m benchmarks updates`: how many definitions the updates of published MCP servers change.

The last versions of a package are installed from npm or PyPI by name, each is started, and what it lists over
stdio is compared with the version before: what a person would have to approve. No script of a package runs at
its installation, and each server gets a home folder of its own.
"""

import asyncio
import json
import re
import shutil
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from toolscript.core.errors import SetupError
from toolscript.core.mcp_client.model import Offer, ServerSpec, ServerStatus, Transport
from toolscript.core.mcp_client.servers import McpServers
from toolscript.core.values import OnProgress, Progress
from toolscript.gateway.approvals import definition_of

INSTALL_SECONDS, START_SECONDS = 240.0, 60.0
MONTH_DAYS = 365.25 / 12
MAX_ERROR = 200
# Packages of a year before need what was current then.
OLD_PYTHON_SDK = "mcp<2"
_FINAL = re.compile(r"\d+(\.\d+)*")
_CALENDAR = re.compile(r"(20\d\d)\.(\d+)\.(\d+)")


@dataclass(frozen=True)
class Package:
    """A published server; `{home}` in its arguments is a folder of its own.

    `overrides` are versions of packages that it needs and that npm would choose otherwise.
    """

    name: str
    registry: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    overrides: Mapping[str, str] = field(default_factory=dict)


def _npm(name: str, *args: str, **env: str) -> Package:
    return Package(name, "npm", args, env)


def _pypi(name: str, *args: str) -> Package:
    return Package(name, "pypi", args)


PACKAGES = (
    _npm("@modelcontextprotocol/server-filesystem", "{home}"),
    _npm("@modelcontextprotocol/server-memory"),
    _npm("@modelcontextprotocol/server-sequential-thinking"),
    _npm("@modelcontextprotocol/server-everything"),
    _npm("@modelcontextprotocol/server-github", GITHUB_PERSONAL_ACCESS_TOKEN="none"),
    _npm("@notionhq/notion-mcp-server", NOTION_TOKEN="none"),
    _npm("@playwright/mcp"),
    _npm("chrome-devtools-mcp"),
    _npm("@upstash/context7-mcp"),
    # The newest version of what it needs has no file.
    replace(_npm("@wonderwhy-er/desktop-commander"), overrides={"typedarray.prototype.slice": "1.0.5"}),
    _pypi("mcp-server-git"),
    _pypi("mcp-server-sqlite", "--db-path", "{home}/test.db"),
    _pypi("mcp-server-fetch"),
    _pypi("mcp-server-time"),
)


@dataclass(frozen=True)
class Listed:
    """What one version lists; `error` says why it could not be listed."""

    version: str
    published: str
    definitions: Mapping[str, str] = field(default_factory=dict, repr=False)
    error: str = ""


@dataclass(frozen=True)
class Update:
    """From one version to the next: how many definitions are new, changed or gone, and in which fields."""

    version: str
    new: int
    changed: int
    removed: int
    fields: Mapping[str, int]

    @property
    def decisions(self) -> int:
        return self.new + self.changed


@dataclass(frozen=True)
class PackageUpdates:
    """`months` between the first and the last version; None without two."""

    package: str
    versions: int
    items: int
    updates: Sequence[Update]
    months: float | None
    failed: Mapping[str, str]

    @property
    def decisions(self) -> int:
        return sum(update.decisions for update in self.updates)

    @property
    def with_change(self) -> int:
        """How many updates need a decision at all: each is one `review approve --server`."""
        return sum(update.decisions > 0 for update in self.updates)

    def as_row(self) -> dict[str, object]:
        a_month = self.months and round(self.with_change / self.months, 2)
        return {
            "package": self.package,
            "listed": self.versions,
            "items": self.items,
            "updates": len(self.updates),
            "with changes": self.with_change,
            "new": sum(update.new for update in self.updates),
            "changed": sum(update.changed for update in self.updates),
            "months": "" if self.months is None else round(self.months, 1),
            "a month": "" if a_month is None else a_month,
        }


def measure_updates(packages: Sequence[Package], versions: int, on_progress: OnProgress) -> list[PackageUpdates]:
    measured = []
    for number, package in enumerate(packages):
        on_progress(Progress(package.name, number, len(packages)))
        measured.append(updates_of(_listed(package, versions), package.name))
    return measured


def updates_of(listed: Sequence[Listed], name: str) -> PackageUpdates:
    started = [entry for entry in listed if not entry.error]
    updates = [_update(before, now) for before, now in pairwise(started)]
    failed = {entry.version: entry.error for entry in listed if entry.error}
    items = len(started[-1].definitions) if started else 0
    return PackageUpdates(name, len(started), items, updates, _months(started), failed)


def as_json(measured: Sequence[PackageUpdates]) -> dict[str, object]:
    return {"packages": [asdict(entry) | {"row": entry.as_row()} for entry in measured]}


def _update(before: Listed, now: Listed) -> Update:
    old, new = before.definitions, now.definitions
    changed = [key for key in new if key in old and new[key] != old[key]]
    fields: Counter[str] = Counter()
    for key in changed:
        first, second = json.loads(old[key]), json.loads(new[key])
        fields.update(name for name in {*first, *second} if first.get(name) != second.get(name))
    added, removed = new.keys() - old.keys(), old.keys() - new.keys()
    return Update(now.version, len(added), len(changed), len(removed), dict(fields))


def _months(listed: Sequence[Listed]) -> float | None:
    """Return the time between the first and the last version.

    A copy of a registry may have fetched an old version late: a version is as old as any that follows it.
    """
    dates = [datetime.fromisoformat(entry.published) for entry in listed]
    return (dates[-1] - min(dates)).total_seconds() / 86_400 / MONTH_DAYS if len(dates) > 1 else None


def _listed(package: Package, count: int) -> list[Listed]:
    published = _npm_dates(package.name) if package.registry == "npm" else _pypi_dates(package.name)
    final = sorted((version for version in published if _FINAL.fullmatch(version)), key=_order)[-count:]
    with TemporaryDirectory(prefix="toolscript-updates-") as folder:
        return [_list_one(package, version, _date(version, published[version]), Path(folder)) for version in final]


def _order(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _date(version: str, published: str) -> str:
    """Return the date that a calendar version names, else that of the registry, which may be a copy's."""
    calendar = _CALENDAR.fullmatch(version)
    return datetime(*map(int, calendar.groups())).isoformat() + "+00:00" if calendar else published  # type: ignore[arg-type]  # noqa: DTZ001


def _npm_dates(name: str) -> dict[str, str]:
    times = json.loads(_run("npm", "view", name, "time", "--json"))
    return {version: date for version, date in times.items() if version not in ("created", "modified")}


def _pypi_dates(name: str) -> dict[str, str]:
    from pip._internal.models.index import PyPI

    with urllib.request.urlopen(f"{PyPI.pypi_url}/{name}/json", timeout=60) as answer:
        releases = json.load(answer)["releases"]
    return {version: files[0]["upload_time_iso_8601"] for version, files in releases.items() if files}


def _list_one(package: Package, version: str, published: str, folder: Path) -> Listed:
    place = folder / version
    home = place / "home"
    home.mkdir(parents=True)
    try:
        command = (
            _npm_command(package, version, place)
            if package.registry == "npm"
            else _pypi_command(package, version, place)
        )
        args = tuple(arg.format(home=home) for arg in (*command[1:], *package.args))
        spec = ServerSpec(
            "server",
            Transport.STDIO,
            command[0],
            args,
            {"HOME": str(home), **package.env},
            str(home),
            start_seconds=START_SECONDS,
        )
        offer = asyncio.run(_offer(spec))
        return Listed(version, published, {item.key: definition_of(item) for item in offer.items})
    except (SetupError, subprocess.SubprocessError, OSError) as error:
        return Listed(version, published, error=str(error)[:MAX_ERROR])
    finally:
        shutil.rmtree(place, ignore_errors=True)


async def _offer(spec: ServerSpec) -> Offer:
    servers = McpServers()
    servers.use([spec])
    revision = -1
    try:
        while True:
            revision = await servers.changed(revision)
            [state] = servers.states()
            if state.status is ServerStatus.FAILED:
                raise SetupError(state.error)
            if offers := servers.offers():
                return offers[0]
    finally:
        await servers.close()


def _npm_command(package: Package, version: str, place: Path) -> list[str]:
    wanted = {"dependencies": {package.name: version}, "overrides": dict(package.overrides)}
    (place / "package.json").write_text(json.dumps(wanted), "utf-8")
    quiet = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
    _run("npm", "install", "--prefix", str(place), *quiet)
    root = place / "node_modules" / package.name
    programs: Any = json.loads((root / "package.json").read_text("utf-8"))["bin"]
    if isinstance(programs, dict):
        programs = programs.get(package.name.rpartition("/")[2]) or next(iter(programs.values()))
    return ["node", str(root / programs)]


def _pypi_command(package: Package, version: str, place: Path) -> list[str]:
    # One environment for all versions: they share most of what they need.
    environment = place.parent / "environment"
    if not environment.exists():
        _run(sys.executable, "-m", "venv", str(environment))
    python = str(environment / "bin" / "python")
    install = (python, "-m", "pip", "install", "-q", "--no-compile", f"{package.name}=={version}")
    try:
        _run(*install, OLD_PYTHON_SDK)
    except subprocess.SubprocessError:
        _run(*install)
    return [str(environment / "bin" / package.name)]


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=True)
    return done.stdout
