"""Config files of this person: taken over from other clients, and our own entry in theirs."""

import sys
from collections.abc import Sequence
from pathlib import Path

from toolscript.adapters.config_files import Problem
from toolscript.adapters.config_files.client_servers import read_clients
from toolscript.adapters.config_files.clients import Client, find_clients
from toolscript.adapters.config_files.connect import (
    ConnectPlan,
    Running,
    apply_connect,
    connect_client,
    disconnect_client,
)
from toolscript.adapters.config_files.importing import (
    ImportPlan,
    PreviewRow,
    apply_import,
    preview_rows,
)
from toolscript.adapters.config_files.importing import plan_import as plan
from toolscript.adapters.config_files.read import FILE_NAME
from toolscript.errors import InvalidRequest, NotFound
from toolscript.gateway.lifecycle import find
from toolscript.settings.gateway import environment


def plan_import(
    *, clients: Sequence[str], target: Path | None, project: bool = False
) -> tuple[ImportPlan, list[PreviewRow], list[Problem]]:
    """What would be written, how to show it, and which files could not be read.

    Files of this folder's project come with the project, from anybody: only with `project`.
    """
    wanted = {_client(name) for name in clients} or set(Client)
    found_files = find_clients(Path.home(), Path.cwd(), sys.platform, environment())
    configs = [one for one in found_files if one.client in wanted and (project or not one.of_project)]
    found, problems = read_clients(configs)
    planned = plan(found, target or Path.home() / FILE_NAME)
    return planned, preview_rows(planned), problems


def write_import(planned: ImportPlan) -> tuple[str, ...]:
    return apply_import(planned)


def connect(client: str, *, undo: bool, write: bool, http: bool = False) -> ConnectPlan:
    places = (client, Path.home(), Path.cwd(), sys.platform, environment())
    planned = disconnect_client(*places) if undo else connect_client(*places, _running() if http else None)
    if write:
        apply_connect(planned)
    return planned


def _running() -> Running:
    """The gateway of these config files: its address holds for as long as its port does."""
    running = find(flags={})
    if running is None:
        raise NotFound(
            "no gateway is running for these config files",
            hint="`toolscript gateway start --background` starts one",
        )
    return Running(running.url, running.token)


def _client(name: str) -> Client:
    try:
        return Client(name)
    except ValueError:
        raise InvalidRequest(f"no client is called {name!r}", hint=f"one of {', '.join(Client)}") from None
