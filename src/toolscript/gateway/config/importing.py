"""Servers of other clients into our config file: first a plan that can be shown, then the file."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import count
from pathlib import Path, PureWindowsPath
from typing import NamedTuple

from toolscript.gateway.config.clients import FoundServer, tidy
from toolscript.gateway.config.jsonc import parse, read_text
from toolscript.gateway.config.problems import nearest_name, with_suffix
from toolscript.gateway.config.read import server_entries
from toolscript.gateway.config.secrets import printable, shown_start
from toolscript.gateway.config.write import PRIVATE, replace_text, with_members

SECTION = "mcpServers"


class Action(StrEnum):
    """ADD is written, SAME is there already, CONFLICT would change what is there, SKIP is not to be taken."""

    ADD = "add"
    SAME = "same"
    CONFLICT = "conflict"
    SKIP = "skip"


@dataclass(frozen=True)
class PlannedServer:
    name: str
    found: FoundServer
    entry: Mapping[str, object] = field(repr=False)
    action: Action = Action.ADD
    reason: str = ""


@dataclass(frozen=True)
class ImportPlan:
    """What would be written to `target`. It holds values as they are: show `preview_rows` and not the plan."""

    target: Path
    servers: tuple[PlannedServer, ...]
    before: str | None = field(default=None, repr=False)

    @property
    def added(self) -> tuple[PlannedServer, ...]:
        return tuple(server for server in self.servers if server.action is Action.ADD)


class PreviewRow(NamedTuple):
    """One line of a preview, without secrets and without what could steer a terminal."""

    server: str
    source: str
    start: str
    action: str


def plan_import(found: Iterable[FoundServer], existing_target: Path) -> ImportPlan:
    """What to do with each server, in the order they were found. What the file has is never changed."""
    target = existing_target.absolute()
    before = read_text(target)
    existing = server_entries(parse(before, target), target) if before and before.strip() else {}
    plan = _Plan(target, {name: tidy(raw) if isinstance(raw, Mapping) else {} for name, raw in existing.items()})
    return ImportPlan(target, tuple(plan.place(server) for server in found), before)


def apply_import(plan: ImportPlan) -> tuple[str, ...]:
    """Writes what the plan adds, and gives the names. What was there before is kept in a file ending in .bak."""
    if plan.added:
        members = {server.name: server.entry for server in plan.added}
        after = with_members(plan.before or "", SECTION, members, plan.target)
        replace_text(plan.target, plan.before, after, backup=backup_of(plan.target), mode=PRIVATE)
    return tuple(server.name for server in plan.added)


def backup_of(target: Path) -> Path:
    return target.with_name(f"{target.name}.bak")


def preview_rows(plan: ImportPlan) -> list[PreviewRow]:
    return [
        PreviewRow(
            printable(server.name),
            server.found.source.title,
            shown_start(server.entry),
            printable("; ".join(_said(server))),
        )
        for server in plan.servers
    ]


def _said(server: PlannedServer) -> Iterator[str]:
    yield f"{server.action}: {server.reason}" if server.reason else str(server.action)
    if server.action is Action.ADD:
        if server.name != server.found.name:
            yield f"called {server.found.name!r} there"
        if server.found.secrets:
            yield f"carries {server.found.secrets} secret{'s' * (server.found.secrets > 1)}"
        yield from server.found.notes


@dataclass
class _Plan:
    """`existing` are the entries of the file, `chosen` those that come to it."""

    target: Path
    existing: Mapping[str, Mapping[str, object]]
    chosen: dict[str, PlannedServer] = field(default_factory=dict)

    def place(self, found: FoundServer) -> PlannedServer:
        base = nearest_name(found.name)
        if found.skip:
            return PlannedServer(base, found, found.entry, Action.SKIP, found.skip)
        entry = _at_home(found, self.target.parent)
        for name in self._names(base, found):
            if self.existing.get(name) == entry:
                return PlannedServer(name, found, entry, Action.SAME, f"is in {self.target.name}")
            if name in self.chosen and self.chosen[name].entry == entry:
                return PlannedServer(
                    name, found, entry, Action.SAME, f"as in {self.chosen[name].found.source.title}"
                )
            if name not in self.existing and name not in self.chosen:
                return self._new(name, base, PlannedServer(name, found, entry))
        raise AssertionError("there is always another name")

    def _names(self, base: str, server: FoundServer) -> Iterator[str]:
        client = server.source.client.value
        yield base
        yield with_suffix(base, client)
        yield from (with_suffix(base, f"{client}-{number}") for number in count(2))

    def _new(self, name: str, base: str, planned: PlannedServer) -> PlannedServer:
        if base in self.existing:
            reason = f"{self.target.name} has another server of this name, which is kept"
            return replace(planned, name=base, action=Action.CONFLICT, reason=reason)
        self.chosen[name] = planned
        return planned


def _at_home(server: FoundServer, folder: Path) -> dict[str, object]:
    """The entry as it means the same in a file of another folder."""
    project, entry = server.source.project, dict(server.entry)
    if folder == project:
        return entry
    cwd = str(entry.get("cwd", ""))
    if server.source.of_project and "command" in entry and _is_relative(cwd):
        entry["cwd"] = str(project / cwd)
    written = json.dumps(entry)
    for variable, value in (("workspaceFolder", str(project)), ("workspaceFolderBasename", project.name)):
        literal = json.dumps(value.replace("${", "$${"))[1:-1]
        written = re.sub(rf"(?<!\$)\$\{{{variable}\}}", literal.replace("\\", r"\\"), written)
    moved: dict[str, object] = json.loads(written)
    return moved


def _is_relative(cwd: str) -> bool:
    return not cwd.startswith(("/", "~", "${")) and not PureWindowsPath(cwd).is_absolute()
