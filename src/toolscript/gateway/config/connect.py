"""Connects a client to the gateway: adds our entry to its config, with a backup, and removes it again."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path

from toolscript.core.errors import ConfigInvalid, NotFound
from toolscript.gateway.config.clients import (
    TITLES,
    Client,
    ClientConfig,
    Layout,
    Places,
    client_files,
    is_toolscript,
)
from toolscript.gateway.config.jsonc import parse, read_text
from toolscript.gateway.config.toml_tables import parse_toml, with_table, without_table
from toolscript.gateway.config.write import (
    PRIVATE,
    read_backup,
    remove,
    replace_text,
    with_members,
    without_member,
)

NAME = "toolscript"
ENTRY: Mapping[str, object] = {"command": "toolscript", "args": ["mcp"]}
# The option, and the last part of the URL, of clients that get all tools themselves.
DIRECT, DIRECT_PATH = "--direct", "/all"
# Clients that search tools by themselves hold ours back, too, unless the entry says that they are always shown.
# Codex waits a second for a server that it does not require. With --direct, their search is to find the tools.
ALWAYS_SHOWN: Mapping[Client, Mapping[str, object]] = {
    Client.CLAUDE_CODE: {"alwaysLoad": True},
    Client.CODEX: {"required": True, "omit_tools_from": ["deferred"]},
}
HTTP_CLIENTS = (Client.CLAUDE_CODE, Client.CURSOR, Client.VS_CODE)


def entry_of(command: Sequence[str], environment: Mapping[str, str]) -> Mapping[str, object]:
    """Return the entry of a client that starts this command."""
    program, *arguments = command
    variables = {"env": dict(environment)} if environment else {}
    return {"command": program, "args": [*arguments, "mcp"], **variables}


def arguments_of(entry: Mapping[str, object]) -> list[str]:
    arguments = entry.get("args")
    return [str(argument) for argument in arguments] if isinstance(arguments, list) else []


class Scope(StrEnum):
    """USER is the user's own config; PROJECT that of a folder, for everyone who works on it."""

    USER = "user"
    PROJECT = "project"


class Change(StrEnum):
    """ADD and REMOVE change the file, SAME needs no change, CONFLICT is for a person to decide."""

    ADD = "add"
    REMOVE = "remove"
    SAME = "same"
    CONFLICT = "conflict"


@dataclass(frozen=True)
class ConnectPlan:
    """The planned change of one file. `after` is None when the file is removed. Do not show either text.

    `secret`: the added entry contains a token. `is_ours`: the entry that is there is one of ours.
    `elsewhere`: a file of the other scope that has one of ours.
    """

    client: Client
    path: Path
    change: Change
    before: str | None = field(default=None, repr=False)
    after: str | None = field(default=None, repr=False)
    secret: bool = False
    is_ours: bool = False
    scope: Scope = Scope.USER
    elsewhere: Path | None = None

    @property
    def backup(self) -> Path:
        return _backup(self.path)

    def __str__(self) -> str:
        descriptions = {
            Change.ADD: f"adds the server {NAME!r} to {self.path}",
            Change.REMOVE: f"takes the server {NAME!r} out of {self.path}",
            Change.SAME: f"{self.path} stays as it is{self._other_scope}",
            Change.CONFLICT: f"{self.path} has another server called {NAME!r}, which stays",
        }
        if self.is_ours and self.change is Change.CONFLICT:
            return f"{TITLES[self.client]}: {self.path} connects it in another way, which stays"
        return f"{TITLES[self.client]}: {descriptions[self.change]}"

    @property
    def _other_scope(self) -> str:
        return f"; for {self.elsewhere} say --scope {_other(self.scope)}" if self.elsewhere is not None else ""

    @property
    def undo_command(self) -> str:
        scope = " --scope project" if self.scope is Scope.PROJECT else ""
        return f"toolscript config connect {self.client} --undo{scope}"


@dataclass(frozen=True)
class Running:
    """A running gateway, for clients that support HTTP."""

    url: str
    token: str = field(repr=False)


def connect_client(
    client_name: str,
    home: Path,
    project: Path,
    platform: str,
    environment: Mapping[str, str],
    running: Running | None = None,
    entry: Mapping[str, object] = ENTRY,
    *,
    direct: bool | None = None,
    scope: Scope = Scope.USER,
) -> ConnectPlan:
    """Plan to add our entry to the client's file: a command, or the URL of a running gateway.

    `direct`: the client gets all tools themselves; None: an entry of ours that is there stays, whichever it is.
    """
    file = _file(client_name, Places(home.absolute(), project.absolute(), platform, environment), scope)
    plan = partial(ConnectPlan, file.client, file.path, scope=scope)
    if running is not None:
        entry = _http_entry(file, running, direct=bool(direct))
    elif direct:
        entry = {**entry, "args": [*arguments_of(entry), DIRECT]}
    shown = {} if direct else ALWAYS_SHOWN.get(file.client, {})
    before = read_text(file.path)
    existing = _entry(file, before)
    if existing is not None:
        starts_us = running is None and is_toolscript(NAME, existing) and "url" not in existing
        same = starts_us and direct in (None, DIRECT in arguments_of(existing))
        same = same or {key: existing.get(key) for key in entry} == entry
        change = Change.SAME if same else Change.CONFLICT
        return plan(change, before, before, is_ours=_is_ours(existing))
    if not (file.of_project or file.path.parent.is_dir()):
        raise NotFound(
            f"there is no sign of {TITLES[file.client]}: {file.path.parent} does not exist",
            hint="start the client once, then connect it",
        )
    secret = running is not None and not file.of_project
    return plan(Change.ADD, before, _with_us(file, before, {**entry, **shown}), secret)


def disconnect_client(
    client_name: str,
    home: Path,
    project: Path,
    platform: str,
    environment: Mapping[str, str],
    scope: Scope = Scope.USER,
) -> ConnectPlan:
    """Plan to undo it: restore the earlier file, or remove only our entry if the file has changed since."""
    places = Places(home.absolute(), project.absolute(), platform, environment)
    file = _file(client_name, places, scope)
    plan = partial(ConnectPlan, file.client, file.path, scope=scope)
    now = read_text(file.path)
    existing = _entry(file, now)
    if now is None or existing is None:
        return plan(Change.SAME, now, now, elsewhere=_connected(file.client, places, _other(scope)))
    if not _is_ours(existing):
        return plan(Change.CONFLICT, now, now)
    backup = read_backup(_backup(file.path))
    for earlier in (backup, None):
        if _is_earlier(file, earlier, existing, now):
            return plan(Change.REMOVE, now, earlier)
    return plan(Change.REMOVE, now, _without_added(file, backup, existing, now) or _without_us(file, now))


def _other(scope: Scope) -> Scope:
    return Scope.USER if scope is Scope.PROJECT else Scope.PROJECT


def has_backup(client_name: str, home: Path, project: Path, platform: str, environment: Mapping[str, str]) -> bool:
    """Return whether a backup of ours is beside the client's file of its user."""
    places = Places(home.absolute(), project.absolute(), platform, environment)
    return read_backup(_backup(_file(client_name, places, Scope.USER).path)) is not None


def _connected(client: Client, places: Places, scope: Scope) -> Path | None:
    """Return the client's file of this scope if it has an entry of ours; None if it cannot be read."""
    with suppress(ConfigInvalid):
        file = _file(client, places, scope)
        existing = _entry(file, read_text(file.path))
        return file.path if existing is not None and _is_ours(existing) else None
    return None


def apply_connect(plan: ConnectPlan) -> None:
    """Apply the plan. Adding makes a backup; restoring the backup removes it."""
    if plan.change is Change.CONFLICT:
        hint = f"`{plan.undo_command}` takes it out" if plan.is_ours else f"rename or remove it in {plan.path}"
        raise ConfigInvalid(str(plan), hint=f"{hint}, then run this again")
    if plan.change is Change.ADD and plan.after is not None:
        if plan.scope is Scope.PROJECT and plan.path.parent.parent.is_dir():
            plan.path.parent.mkdir(exist_ok=True)
        mode = PRIVATE if plan.secret else None
        replace_text(plan.path, plan.before, plan.after, backup=plan.backup, mode=mode)
    if plan.change is Change.REMOVE:
        _undo(plan)


def _undo(plan: ConnectPlan) -> None:
    restores_backup = plan.after is not None and plan.after == read_backup(plan.backup)
    if plan.after is None:
        remove(plan.path, plan.before)
    else:
        replace_text(plan.path, plan.before, plan.after, backup=None if restores_backup else plan.backup)
    if restores_backup:
        remove(plan.backup, read_text(plan.backup))


def _file(client_name: str, places: Places, scope: Scope) -> ClientConfig:
    try:
        client = Client(client_name)
    except ValueError:
        raise NotFound(f"no client is called {client_name!r}", hint=f"one of: {', '.join(Client)}") from None
    files = [file for file in client_files(client, places) if file.of_project == (scope is Scope.PROJECT)]
    if not files:
        raise ConfigInvalid(f"{TITLES[client]} has no config of a project", hint="connect it with --scope user")
    return next((config for config in files if config.path.parent.is_dir()), files[0])


def _entry(file: ClientConfig, text: str | None) -> Mapping[str, object] | None:
    """Return the entry of our name in the text; None if there is none."""
    servers = _servers(file, text)
    if NAME not in servers:
        return None
    entry = servers[NAME]
    return entry if isinstance(entry, Mapping) else {}


def _servers(file: ClientConfig, text: str | None) -> Mapping[str, object]:
    if not (text or "").strip():
        return {}
    value = (
        parse_toml(text or "", file.path) if file.layout is Layout.CODEX else parse(text or "", file.path).value
    )
    servers = value.get(_section(file)) if isinstance(value, Mapping) else None
    return servers if isinstance(servers, Mapping) else {}


def _is_earlier(file: ClientConfig, text: str | None, entry: Mapping[str, object], now: str) -> bool:
    """Return whether the text with the entry added is what is there now."""
    try:
        return _entry(file, text) is None and _with_us(file, text, entry) == now
    except ConfigInvalid:
        return False


def _without_added(file: ClientConfig, earlier: str | None, entry: Mapping[str, object], now: str) -> str | None:
    """Return the text with what we added put back, byte for byte; None where that is not there any more."""
    with suppress(ConfigInvalid):
        if earlier is None or _entry(file, earlier) is not None:
            return None
        with_ours = _with_us(file, earlier, entry)
        begin = _alike(earlier, with_ours)
        end = _alike(earlier[begin:][::-1], with_ours[begin:][::-1])
        added, was = with_ours[begin : len(with_ours) - end], earlier[begin : len(earlier) - end]
        after = now.replace(added, was, 1)
        left = {name: server for name, server in _servers(file, now).items() if name != NAME}
        return after if now.count(added) == 1 and _servers(file, after) == left else None
    return None


def _alike(one: str, other: str) -> int:
    """Return how many characters at the beginning are the same."""
    length = min(len(one), len(other))
    return next((place for place in range(length) if one[place] != other[place]), length)


def _http_entry(file: ClientConfig, running: Running, *, direct: bool) -> Mapping[str, object]:
    if file.client not in HTTP_CLIENTS:
        raise ConfigInvalid(
            f"{TITLES[file.client]} is connected without --http", hint="it starts `toolscript mcp` itself"
        )
    # The file of a project ends up in a repository.
    variable = "TOOLSCRIPT_GATEWAY_TOKEN" if file.client is Client.CLAUDE_CODE else "env:TOOLSCRIPT_GATEWAY_TOKEN"
    token = f"${{{variable}}}" if file.of_project else running.token
    url = f"{running.url}/mcp{DIRECT_PATH if direct else ''}"
    return {"type": "http", "url": url, "headers": {"Authorization": f"Bearer {token}"}}


def _is_ours(entry: Mapping[str, object]) -> bool:
    if "url" not in entry:
        return is_toolscript(NAME, entry)
    return (
        re.fullmatch(rf"http://(127\.0\.0\.1|localhost):\d+/mcp({DIRECT_PATH})?", str(entry.get("url")))
        is not None
    )


def _with_us(file: ClientConfig, text: str | None, entry: Mapping[str, object]) -> str:
    if file.layout is not Layout.CODEX:
        kind: Mapping[str, object] = {"type": "stdio"} if file.layout is Layout.SERVERS else {}
        return with_members(text or "", _section(file), {NAME: {**kind, **entry}}, file.path)
    return with_table(text or "", _section(file), NAME, entry, file.path)


def _without_us(file: ClientConfig, text: str) -> str:
    remove_from = without_table if file.layout is Layout.CODEX else without_member
    return remove_from(text, _section(file), NAME, file.path)


def _section(file: ClientConfig) -> str:
    return Layout.MCP_SERVERS.value if file.layout is Layout.CLAUDE_CODE else file.layout.value


def _backup(path: Path) -> Path:
    return path.with_name(f"{path.name}.toolscript-backup")
