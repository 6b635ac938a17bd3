"""Connects a client to the gateway: adds our entry to its config, with a backup, and removes it again."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
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
from toolscript.gateway.config.jsonc import is_strict, parse, read_text
from toolscript.gateway.config.write import PRIVATE, remove, replace_text, with_members

NAME = "toolscript"
ENTRY: Mapping[str, object] = {"command": "toolscript", "args": ["mcp"]}
# The option, and the last part of the URL, of clients that get all tools themselves.
DIRECT, DIRECT_PATH = "--direct", "/all"
HTTP_CLIENTS = (Client.CLAUDE_CODE, Client.CURSOR, Client.VS_CODE)


def entry_of(command: Sequence[str], environment: Mapping[str, str]) -> Mapping[str, object]:
    """Return the entry of a client that starts this command."""
    program, *arguments = command
    variables = {"env": dict(environment)} if environment else {}
    return {"command": program, "args": [*arguments, "mcp"], **variables}


def arguments_of(entry: Mapping[str, object]) -> list[str]:
    arguments = entry.get("args")
    return [str(argument) for argument in arguments] if isinstance(arguments, list) else []


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
    """

    client: Client
    path: Path
    change: Change
    before: str | None = field(default=None, repr=False)
    after: str | None = field(default=None, repr=False)
    secret: bool = False
    is_ours: bool = False

    @property
    def backup(self) -> Path:
        return _backup(self.path)

    def __str__(self) -> str:
        descriptions = {
            Change.ADD: f"adds the server {NAME!r} to {self.path}",
            Change.REMOVE: f"takes the server {NAME!r} out of {self.path}",
            Change.SAME: f"{self.path} stays as it is",
            Change.CONFLICT: f"{self.path} has another server called {NAME!r}, which stays",
        }
        if self.is_ours and self.change is Change.CONFLICT:
            return f"{TITLES[self.client]}: {self.path} connects it in another way, which stays"
        return f"{TITLES[self.client]}: {descriptions[self.change]}"


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
) -> ConnectPlan:
    """Plan to add our entry to the client's file: a command, or the URL of a running gateway.

    `direct`: the client gets all tools themselves; None: an entry of ours that is there stays, whichever it is.
    """
    file = _file(client_name, Places(home.absolute(), project.absolute(), platform, environment))
    if running is not None:
        entry = _http_entry(file, running, direct=bool(direct))
    elif direct:
        entry = {**entry, "args": [*arguments_of(entry), DIRECT]}
    before = read_text(file.path)
    existing = _entry(file, before)
    if existing is not None:
        starts_us = running is None and is_toolscript(NAME, existing) and "url" not in existing
        same = starts_us and direct in (None, DIRECT in arguments_of(existing))
        same = same or {key: existing.get(key) for key in entry} == entry
        change = Change.SAME if same else Change.CONFLICT
        return ConnectPlan(file.client, file.path, change, before, before, is_ours=_is_ours(existing))
    if not file.path.parent.is_dir():
        raise NotFound(
            f"there is no sign of {TITLES[file.client]}: {file.path.parent} does not exist",
            hint="start the client once, then connect it",
        )
    secret = running is not None and not file.of_project
    return ConnectPlan(file.client, file.path, Change.ADD, before, _with_us(file, before, entry), secret)


def disconnect_client(
    client_name: str, home: Path, project: Path, platform: str, environment: Mapping[str, str]
) -> ConnectPlan:
    """Plan to undo it: restore the earlier file, or remove only our entry if the file has changed since."""
    file = _file(client_name, Places(home.absolute(), project.absolute(), platform, environment))
    now = read_text(file.path)
    existing = _entry(file, now)
    if now is None or existing is None:
        return ConnectPlan(file.client, file.path, Change.SAME, now, now)
    if not _is_ours(existing):
        return ConnectPlan(file.client, file.path, Change.CONFLICT, now, now)
    for earlier in (read_text(_backup(file.path)), None):
        if _is_without_us(file, earlier) and _with_us(file, earlier, existing) == now:
            return ConnectPlan(file.client, file.path, Change.REMOVE, now, earlier)
    return ConnectPlan(file.client, file.path, Change.REMOVE, now, _without_us(file, now))


def apply_connect(plan: ConnectPlan) -> None:
    """Apply the plan. Adding makes a backup; restoring the backup removes it."""
    if plan.change is Change.CONFLICT:
        remove_it = f"`toolscript config connect {plan.client} --undo` takes it out"
        hint = remove_it if plan.is_ours else f"rename or remove it in {plan.path}"
        raise ConfigInvalid(str(plan), hint=f"{hint}, then run this again")
    if plan.change is Change.ADD and plan.after is not None:
        mode = PRIVATE if plan.secret else None
        replace_text(plan.path, plan.before, plan.after, backup=plan.backup, mode=mode)
    if plan.change is Change.REMOVE:
        _undo(plan)


def _undo(plan: ConnectPlan) -> None:
    restores_backup = plan.after == read_text(plan.backup)
    if plan.after is None:
        remove(plan.path, plan.before)
    else:
        replace_text(plan.path, plan.before, plan.after, backup=plan.backup)
    if restores_backup:
        remove(plan.backup, read_text(plan.backup))


def _file(client_name: str, places: Places) -> ClientConfig:
    try:
        files = list(client_files(Client(client_name), places))
    except ValueError:
        raise NotFound(f"no client is called {client_name!r}", hint=f"one of: {', '.join(Client)}") from None
    # The running client rewrites ~/.claude.json all the time, so the project's file is used.
    wanted = [config for config in files if config.of_project == (config.client is Client.CLAUDE_CODE)]
    return next((config for config in wanted if config.path.parent.is_dir()), wanted[0])


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
    value = _toml(text or "", file.path) if file.layout is Layout.CODEX else parse(text or "", file.path).value
    servers = value.get(_section(file)) if isinstance(value, Mapping) else None
    return servers if isinstance(servers, Mapping) else {}


def _is_without_us(file: ClientConfig, text: str | None) -> bool:
    """Return whether the text can be the earlier state: it has no entry of ours."""
    try:
        return _entry(file, text) is None
    except ConfigInvalid:
        return False


def _http_entry(file: ClientConfig, running: Running, *, direct: bool) -> Mapping[str, object]:
    if file.client not in HTTP_CLIENTS:
        raise ConfigInvalid(
            f"{TITLES[file.client]} is connected without --http", hint="it starts `toolscript mcp` itself"
        )
    # Claude Code's file is in the project, and thus in a repository.
    token = "${TOOLSCRIPT_GATEWAY_TOKEN}" if file.of_project else running.token
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
    before = text or ""
    table = _toml_of(entry)
    after = before + ("" if not before or before.endswith("\n") else "\n") + ("\n" if before else "") + table
    try:
        added = _servers(file, after)
    except ConfigInvalid:
        added = {}
    if added != {**_servers(file, text), NAME: dict(entry)}:
        raise ConfigInvalid(f"cannot add to {file.path} without harm", hint=f"add it by hand:\n{table}")
    return after


def _toml_of(entry: Mapping[str, object]) -> str:
    """Return the entry as a table of TOML, whose strings and lists are written as in JSON."""
    lines = [
        f"{key} = {json.dumps(value, ensure_ascii=False)}"
        for key, value in entry.items()
        if not isinstance(value, Mapping)
    ]
    for key, value in entry.items():
        if isinstance(value, Mapping):
            members = ", ".join(f"{name} = {json.dumps(text, ensure_ascii=False)}" for name, text in value.items())
            lines.append(f"{key} = {{{members}}}")
    return "\n".join([f"[mcp_servers.{NAME}]", *lines]) + "\n"


def _without_us(file: ClientConfig, text: str) -> str:
    if file.layout is Layout.CODEX:
        table = _toml_of(_entry(file, text) or {})
        if text.count(table) == 1:
            return re.sub(r"\n?" + re.escape(table), "", text)
    if file.layout is Layout.CODEX or not is_strict(text):
        raise ConfigInvalid(f"{file.path} was changed since", hint=f"take the server {NAME!r} out by hand")
    value = parse(text, file.path).value
    if isinstance(value, dict):
        value[_section(file)].pop(NAME)
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _section(file: ClientConfig) -> str:
    return file.layout.value


def _toml(text: str, path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        raise ConfigInvalid(f"{path} is not TOML", hint="correct the file first") from None


def _backup(path: Path) -> Path:
    return path.with_name(f"{path.name}.toolscript-backup")
