"""`toolscript setup`: the steps from a fresh installation to a connected client, and the way back.

A step says what it would do before it does it. Beside each file that it changes it leaves a backup.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from toolscript.core.embedding.model_runtime import GAIN, INSTALL, is_installed
from toolscript.core.embedding.static_table import BUILTIN
from toolscript.core.errors import ConfigInvalid, NotFound, ToolscriptError
from toolscript.core.mcp_client.model import ServerState, without_server_output
from toolscript.gateway import autostart, client_configs
from toolscript.gateway.config.clients import TITLES, Client, find_clients
from toolscript.gateway.config.connect import (
    Change,
    ConnectPlan,
    apply_connect,
    connect_client,
    disconnect_client,
    entry_of,
    has_backup,
)
from toolscript.gateway.config.importing import Action, apply_import, imported_since, undo_import
from toolscript.gateway.config.read import FILE_NAME
from toolscript.gateway.discovery import place_of, with_secrets
from toolscript.gateway.model import Gateway, Need
from toolscript.gateway.program import program_command
from toolscript.gateway.session import ask
from toolscript.gateway.settings import GatewaySettings, environment, load_gateway_settings
from toolscript.gateway.trust import decide_trust, trust_question

CONNECT = "connect "
MAX_NAMED, MAX_ERROR = 10, 200


class StepName(StrEnum):
    IMPORT = "import"
    TRUST = "trust"
    CHECK = "check"
    MODEL = "model"
    CONNECT = "connect"
    AUTOSTART = "autostart"


@dataclass(frozen=True)
class SetupStep:
    """`preview`: what it would write. `question` is empty where there is nothing to do.

    `apply` and `decline` return what they did.
    `by_person`: only someone who has read the preview may agree, so `--yes` does not.
    """

    name: StepName
    title: str
    preview: tuple[str, ...] = ()
    question: str = ""
    apply: Callable[[], str] = field(default=lambda: "", repr=False)
    decline: Callable[[], str] = field(default=lambda: "", repr=False)
    by_person: bool = False


@dataclass
class Setup:
    """The steps, in their order. What was answered to one is known to those after it."""

    settings: GatewaySettings = field(default_factory=load_gateway_settings)
    clients: Sequence[str] = ()
    model_declined: bool = False

    @property
    def own_file(self) -> Path:
        return place_of(self.settings).own_file

    @property
    def has_servers(self) -> bool:
        """Return whether a config file names one, also one that cannot be used yet."""
        config = place_of(self.settings).read(environment())
        return bool(config.servers or config.problems or config.untrusted)

    def steps(self, skipped: Sequence[StepName] = ()) -> Iterator[SetupStep]:
        """Yield each step when those before it have been taken, so that its preview is of now."""
        makers: dict[StepName, Callable[[], Iterator[SetupStep]]] = {
            StepName.IMPORT: self._import,
            StepName.TRUST: self._trust,
            StepName.CHECK: self._check,
            StepName.MODEL: self._model,
            StepName.CONNECT: self._connect,
            StepName.AUTOSTART: self._autostart,
        }
        for name, make in makers.items():
            if name not in skipped:
                yield from make()

    def _import(self) -> Iterator[SetupStep]:
        plan, rows, problems = client_configs.plan_import(clients=(), target=None)
        notes = [f"warning: {problem}" for problem in problems]
        shown = [f"{row.server} ({row.source}): {row.start}: {row.action}" for row in rows]
        if not plan.added:
            known = any(server.action is Action.SAME for server in plan.servers)
            title = (
                "all servers of other clients are imported" if known else "no other client has a server to import"
            )
            if not plan.servers:
                files = client_configs.searched_files(clients=(), project=False)
                notes += [f"looked in {config.path} ({config.title})" for config in files]
            yield SetupStep(StepName.IMPORT, title, (*notes, *shown))
            return

        def apply() -> str:
            added = apply_import(plan)
            return f"{len(added)} servers written to {plan.target}"

        count = len(plan.added)
        title = f"{count} server{'s' * (count > 1)} of other clients can be imported"
        yield SetupStep(
            StepName.IMPORT,
            title,
            (*notes, *shown),
            f"write {'them' if count > 1 else 'it'} to {plan.target}?",
            apply,
        )

    def _trust(self) -> Iterator[SetupStep]:
        question = trust_question(flags={})
        if question is None or not question.starts or question.state not in ("unknown", "changed"):
            return
        shown = [f"{start.server}: {start.start}" for start in question.starts]
        given = [f"{start.server} is given {start.given}" for start in question.starts if start.given]

        def apply() -> str:
            decide_trust(question, trusted=True)
            return f"trusted: {question.path}; `toolscript trust --forget` takes it back"

        yield SetupStep(
            StepName.TRUST,
            f"{question.path} of this project would start",
            (*shown, *given),
            "trust it?",
            apply,
            by_person=True,
        )

    def _check(self) -> Iterator[SetupStep]:
        """Start the servers once: a first search has their tools then, and a person sees what does not work."""
        place = with_secrets(place_of(self.settings), self.settings.data_folder)
        servers = place.read(environment()).servers
        if not servers:
            return
        names = ", ".join(server.name for server in servers[:MAX_NAMED])
        more = f" and {len(servers) - MAX_NAMED} more" if len(servers) > MAX_NAMED else ""

        def apply() -> str:
            states = ask(_servers_of, flags={}, need=Need(model=False, uses_cache=False))
            return "\n".join(_described(states))

        yield SetupStep(
            StepName.CHECK,
            "the servers can be started once, so that the first search knows their tools",
            (f"{names}{more}",),
            "start them?",
            apply,
        )

    def _model(self) -> Iterator[SetupStep]:
        if "search_model" in self.settings.sources:
            yield SetupStep(StepName.MODEL, f"the model is set: {self.settings.search_model}")
        elif not is_installed():
            yield SetupStep(StepName.MODEL, f"searches rank with the model of the package; {INSTALL} {GAIN}")
        else:
            yield SetupStep(
                StepName.MODEL,
                "searches rank with the model of the package at once",
                (f"{self.settings.search_model}, a download of 67 MB, {GAIN}",),
                "download it in the background at the first search?",
                lambda: "the gateway downloads it when it first runs, and moves to it when it is there",
                self._decline_model,
            )

    def _decline_model(self) -> str:
        self.model_declined = True
        return f"clients and the autostart are told to use the model of the package (--model {BUILTIN})"

    def _connect(self) -> Iterator[SetupStep]:
        wanted = [Client(name) for name in self.clients] or self._found_clients()
        if not wanted:
            clients = ", ".join(Client)
            yield SetupStep(StepName.CONNECT, f"no client was found; `--client NAME` connects one of {clients}")
        for client in wanted:
            yield self._connect_to(client)

    def _found_clients(self) -> list[Client]:
        """Return the clients that have a config file of their user."""
        files = find_clients(Path.home(), Path.cwd(), sys.platform, environment())
        return list(dict.fromkeys(file.client for file in files if not file.of_project))

    def _connect_to(self, client: Client) -> SetupStep:
        command = program_command()
        entry = entry_of(command, self._variables())
        try:
            plan = connect_client(client, Path.home(), Path.cwd(), sys.platform, environment(), entry=entry)
        except (NotFound, ConfigInvalid) as error:
            return SetupStep(StepName.CONNECT, f"{TITLES[client]}: {error.message} ({error.hint})")
        if plan.change is not Change.ADD:
            return SetupStep(StepName.CONNECT, str(plan))
        shown = f"starts `{' '.join([*command, 'mcp'])}`"

        def apply() -> str:
            apply_connect(plan)
            return (
                f"done: restart {TITLES[client]}, then take the servers that it shares with Toolscript out of it"
            )

        return SetupStep(StepName.CONNECT, str(plan), (shown,), f"connect {TITLES[client]}?", apply)

    def _variables(self) -> dict[str, str]:
        """Return what a client that was not started by this shell has to be told."""
        chosen = autostart.chosen_settings(self.settings)
        if self.model_declined:
            chosen["search_model"] = BUILTIN
        return {f"TOOLSCRIPT_{name.upper()}": value for name, value in chosen.items()}

    def _autostart(self) -> Iterator[SetupStep]:
        flags = {"search_model": BUILTIN} if self.model_declined else {}
        if why := autostart.why_not_here(sys.platform, environment()):
            yield SetupStep(StepName.AUTOSTART, f"no start at login: {why}; {autostart.INSTEAD}")
            return
        plan = autostart.plan_install(flags=flags)
        if autostart.is_installed(flags=flags):
            yield SetupStep(StepName.AUTOSTART, f"the gateway starts at login: {plan.path}")
            return

        def apply() -> str:
            done = autostart.install(flags=flags)
            return f"the gateway starts at login, by {done.plan.system}"

        yield SetupStep(
            StepName.AUTOSTART,
            f"the gateway can start at login, by {plan.system}",
            (f"writes {plan.path}",),
            "start it at login?",
            apply,
        )


async def _servers_of(gateway: Gateway) -> Sequence[ServerState]:
    return await gateway.servers()


def _described(states: Sequence[ServerState]) -> Iterator[str]:
    answering = [state for state in states if state.answers]
    tools = sum(state.tools for state in answering)
    yield f"{len(answering)} of {len(states)} servers answered, with {tools} tools"
    failed = [state for state in states if not state.answers]
    for state in failed[:MAX_NAMED]:
        yield f"{state.name}: {state.status}, {without_server_output(state.error)[:MAX_ERROR]}"
    if failed:
        yield "`toolscript doctor` says how to fix them"


@dataclass(frozen=True)
class Undone:
    """`kept` are files that were changed since and stay. `errors`: why the other steps could not be taken back."""

    steps: tuple[str, ...]
    kept: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


def steps_taken(*, flags: Mapping[str, object]) -> list[str]:
    """Return the steps that can be taken back, the last one first: what is there now says so."""
    clients = [f"{CONNECT}{client}" for client in reversed(Client) if _is_connected(client)]
    installed = [autostart.STEP] if autostart.is_installed(flags=flags) else []
    imported = [StepName.IMPORT.value] if imported_since(_imported_file()) else []
    return [*installed, *clients, *imported]


def undo_setup(names: Sequence[str], *, flags: Mapping[str, object]) -> Undone:
    """Take steps back. One that fails does not keep the others."""
    taken = steps_taken(flags=flags)
    if unknown := [name for name in names if name not in taken]:
        known = f"there is {', '.join(taken)}" if taken else "nothing is set up"
        raise NotFound(f"no step {', '.join(unknown)} can be taken back", hint=known)
    done: list[str] = []
    kept: list[str] = []
    errors: list[str] = []
    for name in names:
        try:
            kept += _undo(name, flags)
            done.append(name)
        except ToolscriptError as error:
            errors.append(f"{name}: {error.message} ({error.hint})")
    return Undone(tuple(done), tuple(kept), tuple(errors))


def _undo(name: str, flags: Mapping[str, object]) -> list[str]:
    if name == autostart.STEP:
        autostart.uninstall(flags=flags)
    elif name.startswith(CONNECT):
        client = name.removeprefix(CONNECT)
        apply_connect(_disconnection(client))
        client_configs.client_tokens(flags=flags).revoke(client)
    elif not undo_import(_imported_file()):
        return [str(_imported_file())]
    return []


def _disconnection(client: str) -> ConnectPlan:
    return disconnect_client(client, Path.home(), Path.cwd(), sys.platform, environment())


def _is_connected(client: Client) -> bool:
    """Return whether an entry of ours is there, or may be: a damaged file beside which there is a backup."""
    try:
        return _disconnection(client).change is Change.REMOVE
    except ConfigInvalid:
        return has_backup(client, Path.home(), Path.cwd(), sys.platform, environment())


def _imported_file() -> Path:
    return Path.home() / FILE_NAME
