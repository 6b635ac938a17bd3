"""Config files of MCP clients: import their servers, and connect them to the gateway."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from toolscript.core.errors import InvalidRequest, NotFound
from toolscript.gateway.client_tokens import ClientTokens
from toolscript.gateway.config import importing
from toolscript.gateway.config.clients import (
    Client,
    ClientConfig,
    Places,
    client_files,
    find_clients,
    read_clients,
)
from toolscript.gateway.config.connect import (
    Change,
    ConnectPlan,
    Running,
    Scope,
    apply_connect,
    connect_client,
    disconnect_client,
    entry_of,
)
from toolscript.gateway.config.importing import ImportPlan, PreviewRow, preview_rows
from toolscript.gateway.config.problems import Problem
from toolscript.gateway.config.read import FILE_NAME
from toolscript.gateway.daemon import find
from toolscript.gateway.program import program_command
from toolscript.gateway.record import RUN
from toolscript.gateway.settings import environment, load_gateway_settings


def plan_import(
    *, clients: Sequence[str], target: Path | None, project: bool = False
) -> tuple[ImportPlan, list[PreviewRow], list[Problem]]:
    """Return the plan, its preview rows, and the files that could not be read.

    Config files in this folder's project may come from any author, so they are included only with `project`.
    """
    wanted = {_client(name) for name in clients} or set(Client)
    found_files = find_clients(Path.home(), Path.cwd(), sys.platform, environment())
    configs = [config for config in found_files if config.client in wanted and (project or not config.of_project)]
    servers, problems = read_clients(configs)
    planned = importing.plan_import(servers, target or Path.home() / FILE_NAME)
    return planned, preview_rows(planned), problems


def searched_files(*, clients: Sequence[str], project: bool) -> list[ClientConfig]:
    """Return every file that an import looks for, whether it is there or not."""
    places = Places(Path.home(), Path.cwd(), sys.platform, environment())
    wanted = [_client(name) for name in clients] or list(Client)
    files = [config for client in wanted for config in client_files(client, places)]
    return [config for config in files if project or not config.of_project]


def connect(
    client: str,
    *,
    undo: bool,
    write: bool,
    http: bool = False,
    direct: bool = False,
    scope: Scope = Scope.USER,
) -> ConnectPlan:
    places = (client, Path.home(), Path.cwd(), sys.platform, environment())
    if undo:
        planned = disconnect_client(*places, scope)
    else:
        # A project's file is for others, too: nothing of this machine.
        command = ("toolscript",) if scope is Scope.PROJECT else program_command()
        running = _running(client, write=write) if http and _client(client) else None
        planned = connect_client(*places, running, entry_of(command, {}), direct=direct, scope=scope)
    if write:
        apply_connect(planned)
        if undo and scope is Scope.USER and planned.change is Change.REMOVE:
            client_tokens(flags={}).revoke(client)
    return planned


def client_tokens(*, flags: Mapping[str, object]) -> ClientTokens:
    return ClientTokens(load_gateway_settings(flags).data_folder / RUN)


def _running(client: str, *, write: bool) -> Running:
    """Return the gateway that runs for these config files, and the token of this client; none is made for a plan.

    Its address is valid while it keeps its port.
    """
    running = find(flags={})
    if running is None:
        raise NotFound(
            "no gateway is running for these config files",
            hint="`toolscript gateway start --background` starts one",
        )
    tokens = client_tokens(flags={})
    return Running(running.url, tokens.of(client) if write else tokens.known(client))


def _client(name: str) -> Client:
    try:
        return Client(name)
    except ValueError:
        raise InvalidRequest(f"no client is called {name!r}", hint=f"one of {', '.join(Client)}") from None
