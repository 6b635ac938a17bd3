"""Import of other clients' servers into our config file: a plan to preview, then the write."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import count
from pathlib import Path, PureWindowsPath
from typing import NamedTuple

from toolscript.core.errors import ConfigInvalid
from toolscript.gateway.config.clients import FoundServer, tidy
from toolscript.gateway.config.jsonc import parse, read_text
from toolscript.gateway.config.problems import nearest_name, with_suffix
from toolscript.gateway.config.read import server_entries
from toolscript.gateway.config.secrets import printable, start_summary
from toolscript.gateway.config.write import PRIVATE, is_unchanged, read_backup, remove, replace_text, with_members

SECTION, NAME = "mcpServers", "toolscript"


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
    """Servers to write to `target`. It contains secrets: show `preview_rows`, not the plan."""

    target: Path
    servers: tuple[PlannedServer, ...]
    before: str | None = field(default=None, repr=False)

    @property
    def added(self) -> tuple[PlannedServer, ...]:
        return tuple(server for server in self.servers if server.action is Action.ADD)


class PreviewRow(NamedTuple):
    """One line of a preview, without secrets and terminal control characters."""

    server: str
    source: str
    start: str
    action: str


def plan_import(found: Iterable[FoundServer], existing_target: Path) -> ImportPlan:
    """Plan an action for each server, in the given order. Existing entries are never changed."""
    target = existing_target.absolute()
    before = read_text(target)
    existing = server_entries(parse(before, target), target) if before and before.strip() else {}
    plan = _Plan(target, {name: tidy(raw) if isinstance(raw, Mapping) else {} for name, raw in existing.items()})
    return ImportPlan(target, tuple(plan.place(server) for server in found), before)


def apply_import(plan: ImportPlan) -> tuple[str, ...]:
    """Write the added servers and return their names. The earlier file is kept beside it.

    An empty backup says that there was none.
    """
    if plan.added:
        members = {server.name: server.entry for server in plan.added}
        after = with_members(plan.before or "", SECTION, members, plan.target)
        if plan.before is None:
            replace_text(plan.target, None, "", backup=backup_of(plan.target))
        replace_text(plan.target, plan.before or "", after, backup=backup_of(plan.target), mode=PRIVATE)
    return tuple(server.name for server in plan.added)


def backup_of(target: Path) -> Path:
    return target.with_name(f"{target.name}.toolscript-backup")


def imported_since(target: Path) -> list[str]:
    """Return the servers in the file that its backup, from before the last import, does not have."""
    before, now = read_backup(backup_of(target)), read_text(target)
    if before is None or now is None:
        return []
    try:
        old, new = (server_entries(parse(text or "{}", target), target) for text in (before, now))
    except ConfigInvalid:
        return []
    return [name for name in new if name not in old]


def undo_import(target: Path) -> bool:
    """Put the backup back, unless the file was written since: then return False."""
    backup, now = backup_of(target), read_text(target)
    before = read_backup(backup)
    if before is None or not is_unchanged(target.resolve(), backup):
        return False
    if before:
        replace_text(target, now, before, backup=None)
    else:
        remove(target, now)
    backup.unlink(missing_ok=True)
    return True


def preview_rows(plan: ImportPlan) -> list[PreviewRow]:
    return [
        PreviewRow(
            printable(server.name),
            server.found.source.title,
            start_summary(server.entry),
            printable("; ".join(_describe_action(server))),
        )
        for server in plan.servers
    ]


def _describe_action(server: PlannedServer) -> Iterator[str]:
    yield f"{server.action}: {server.reason}" if server.reason else str(server.action)
    if server.action is Action.ADD:
        if server.name.casefold() == NAME or server.found.name.casefold() == NAME:
            yield "it is not Toolscript, only called so"
        if server.name != server.found.name:
            yield f"called {server.found.name!r} there"
        if server.found.secrets:
            yield f"carries {server.found.secrets} secret{'s' * (server.found.secrets > 1)}"
        yield from server.found.notes


@dataclass
class _Plan:
    """`existing` are the entries of the file, `chosen` the ones to add."""

    target: Path
    existing: Mapping[str, Mapping[str, object]]
    chosen: dict[str, PlannedServer] = field(default_factory=dict)

    def place(self, found: FoundServer) -> PlannedServer:
        base = nearest_name(found.name)
        if found.skip:
            return PlannedServer(base, found, found.entry, Action.SKIP, found.skip)
        entry = _relocate(found, self.target.parent)
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


def _relocate(server: FoundServer, folder: Path) -> dict[str, object]:
    """Return the entry adapted to a file in another folder."""
    project, entry = server.source.project, dict(server.entry)
    if folder == project:
        return entry
    cwd = str(entry.get("cwd", ""))
    if server.source.of_project and "command" in entry and _is_relative(cwd):
        entry["cwd"] = str(project / cwd)
    serialized = json.dumps(entry)
    for variable, value in (("workspaceFolder", str(project)), ("workspaceFolderBasename", project.name)):
        literal = json.dumps(value.replace("${", "$${"))[1:-1]
        serialized = re.sub(rf"(?<!\$)\$\{{{variable}\}}", literal.replace("\\", r"\\"), serialized)
    moved: dict[str, object] = json.loads(serialized)
    return moved


def _is_relative(cwd: str) -> bool:
    return not cwd.startswith(("/", "~", "${")) and not PureWindowsPath(cwd).is_absolute()
