"""`toolscript setup`: the steps from a fresh installation to a connected client, each of which can be taken back.

A step says what it would do before it does it. What it writes is recorded with what was there before.
"""

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from toolscript.core.embedding.model_runtime import GAIN, INSTALL, is_installed
from toolscript.core.embedding.static_table import BUILTIN
from toolscript.core.errors import ConfigInvalid, NotFound, SetupError, ToolscriptError
from toolscript.core.mcp_client.model import ServerState, short_error
from toolscript.gateway import autostart, client_configs, daemon
from toolscript.gateway.config.clients import PROJECT_FILE, TITLES, Client, find_clients
from toolscript.gateway.config.connect import (
    Change,
    Scope,
    apply_connect,
    connect_client,
    disconnect_client,
    entry_of,
)
from toolscript.gateway.config.importing import Action, apply_import, backup_of
from toolscript.gateway.discovery import Record, place_of, running_file, running_here, with_secrets
from toolscript.gateway.launch import LOG_NAME
from toolscript.gateway.model import Gateway, Need
from toolscript.gateway.program import program_command
from toolscript.gateway.runtime import APPROVALS, approvals_folder, cache_folder
from toolscript.gateway.session import ask
from toolscript.gateway.settings import GatewaySettings, environment, load_gateway_settings
from toolscript.gateway.store.activity_file import FILE as ACTIVITY
from toolscript.gateway.store.approvals import DECIDED
from toolscript.gateway.trust import decide_trust, trust_question
from toolscript.gateway.undo_journal import FILE, UndoJournal, remove_empty

CONNECT = "connect "
MAX_NAMED, MAX_ERROR = 10, 200
# What the gateway makes in its data folder. Trust records, tables of a person and all other names are not ours.
RUN, MODELS = "run", "models"
OWN_FOLDERS = ("cache", RUN)
OWN_FILES = (LOG_NAME, *(f"{ACTIVITY}{end}" for end in ("", "-wal", "-shm")), FILE)
# Beside the folders of downloads, `models--…`.
MODEL_FILES = (".locks", "CACHEDIR.TAG", "refused.json", "refused.new")


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
    def journal(self) -> UndoJournal:
        return UndoJournal(self.settings.data_folder)

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
            yield SetupStep(StepName.IMPORT, title, (*notes, *shown))
            return
        paths = [plan.target.resolve(), backup_of(plan.target)]

        def apply() -> str:
            with self.journal.recorded(StepName.IMPORT, paths):
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
        record = self._trust_record(question.path)

        def apply() -> str:
            with self.journal.recorded(StepName.TRUST, [record]):
                decide_trust(question, trusted=True)
            return f"trusted: {question.path}"

        yield SetupStep(
            StepName.TRUST,
            f"{question.path} of this project would start",
            (*shown, *given),
            "trust it?",
            apply,
            by_person=True,
        )

    @staticmethod
    def _trust_record(path: Path) -> Path:
        from toolscript.gateway.config.read import ConfigPlace

        return ConfigPlace().store.file_of(path)

    def _check(self) -> Iterator[SetupStep]:
        """Start the servers once: a first search has their tools then, and a person sees what does not work."""
        place = with_secrets(place_of(self.settings), self.settings.data_folder)
        servers = place.read(environment()).servers
        if not servers:
            return
        names = ", ".join(server.name for server in servers[:MAX_NAMED])
        more = f" and {len(servers) - MAX_NAMED} more" if len(servers) > MAX_NAMED else ""

        def apply() -> str:
            cache = self.journal.recorded_cache(StepName.CHECK, cache_folder(self.settings))
            with cache, self.journal.recorded_new(StepName.CHECK, approvals_folder()):
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
            paths = [plan.path.resolve(), plan.backup]
            planned = dict(zip(paths, (plan.after, plan.before), strict=True))
            with self.journal.recorded(f"{CONNECT}{client}", paths, planned):
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
        if autostart.STEP in self.journal.names():
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
        yield f"{state.name}: {state.status}, {short_error(state.error)[:MAX_ERROR]}"
    if failed:
        yield "`toolscript doctor` says how to fix them"


@dataclass(frozen=True)
class Undone:
    """`kept` are files that were changed since and stay, `removed` a data folder that setup had made.

    `errors`: why the other steps could not be taken back. Their records stay.
    """

    steps: tuple[str, ...]
    kept: tuple[str, ...] = ()
    removed: str = ""
    errors: tuple[str, ...] = ()


def recorded_steps(*, flags: Mapping[str, object]) -> list[str]:
    """Return the steps that can be taken back, the last one first."""
    return [*reversed(UndoJournal(load_gateway_settings(flags).data_folder).names())]


def undo_setup(names: Sequence[str], *, flags: Mapping[str, object]) -> Undone:
    """Take steps back. With the last one goes the data folder, if it was not there before the first.

    It goes only if it holds nothing but files of the gateway.
    """
    settings = load_gateway_settings(flags)
    folder = settings.data_folder.absolute()
    journal = UndoJournal(folder)
    _require_recorded(names, journal.names())
    if set(names) != set(journal.names()):
        return _undo_all(names, journal, flags)
    made = journal.folders()
    with _without_gateway(settings, flags) as held:
        done = _undo_all(names, journal, flags)
        if held is None or done.kept or done.errors or str(folder) not in made or not _has_only_ours(folder):
            return done
        _remove_ours(folder, held)
        remove_empty(made)
    return replace(done, removed="" if folder.exists() else str(folder))


def _require_recorded(names: Sequence[str], recorded: Sequence[str]) -> None:
    unknown = [name for name in names if name not in recorded]
    if unknown:
        known = f"recorded are {', '.join(recorded)}" if recorded else "nothing is recorded"
        raise NotFound(f"no step {', '.join(unknown)} can be taken back", hint=known)


@contextmanager
def _without_gateway(settings: GatewaySettings, flags: Mapping[str, object]) -> Iterator[Record | None]:
    """Stop the gateway and take its place: a connected client would start another. None if one was faster."""
    if running_here(settings) is not None:
        with suppress(NotFound):
            daemon.stop(flags=flags)
    file = running_file(settings)
    run = file.path.parent
    was_there = run.exists()
    with ExitStack() as stack:
        held = None
        with suppress(SetupError):
            held = stack.enter_context(file.held())
        yield held
        if held is not None and not was_there:
            _remove_run(run, held)


def _undo_all(names: Sequence[str], journal: UndoJournal, flags: Mapping[str, object]) -> Undone:
    """Take each step back. One that fails does not keep the others."""
    done: list[str] = []
    kept: list[str] = []
    errors: list[str] = []
    for name in names:
        try:
            kept += _undo(name, journal, flags)
            done.append(name)
        except ToolscriptError as error:
            errors.append(f"{name}: {error.message} ({error.hint})")
    return Undone(tuple(done), tuple(kept), errors=tuple(errors))


def _undo(name: str, journal: UndoJournal, flags: Mapping[str, object]) -> Sequence[str]:
    if name == autostart.STEP:
        return autostart.uninstall(flags=flags).kept
    if not name.startswith(CONNECT):
        return journal.undo(name)
    kept = journal.restore(name)
    for paths in journal.paths(name):
        if not set(kept).isdisjoint(paths):
            _disconnect(name.removeprefix(CONNECT), Path(paths[-1]))
    journal.forget(name)
    return []


def _disconnect(client: str, backup: Path) -> None:
    """Take our entry out of a file that was changed since, and leave the rest. A project may be another folder."""
    scope = Scope.PROJECT if backup.name.startswith(PROJECT_FILE) else Scope.USER
    plan = disconnect_client(client, Path.home(), backup.parent, sys.platform, environment(), scope)
    if plan.backup.absolute() != backup:
        raise SetupError(
            f"{TITLES[Client(client)]} was connected beside {backup}, and its file was changed since",
            hint="take the server 'toolscript' out by hand",
        )
    apply_connect(plan)


def _has_only_ours(folder: Path) -> bool:
    """Return whether the gateway made all that is in its data folder."""
    return all(_is_ours(path) for path in folder.iterdir())


def _is_ours(path: Path) -> bool:
    if path.is_symlink():
        return False
    if path.name == MODELS and path.is_dir():
        return all(item.name in MODEL_FILES or item.name.startswith("models--") for item in path.iterdir())
    if path.name == APPROVALS and path.is_dir():
        # The first offers of servers. What a person decided about them is not ours.
        return not (path / DECIDED).exists()
    return (path.is_dir() and path.name in OWN_FOLDERS) or (path.is_file() and path.name in OWN_FILES)


def _remove_ours(folder: Path, held: Record) -> None:
    for name in (*OWN_FOLDERS, MODELS, APPROVALS):
        if name != RUN:
            shutil.rmtree(folder / name, ignore_errors=True)
    for name in OWN_FILES:
        with suppress(OSError):
            (folder / name).unlink()
    _remove_run(folder / RUN, held)


def _remove_run(run: Path, held: Record) -> None:
    if os.name == "nt":
        # Windows removes no file that is open.
        held.release()
    shutil.rmtree(run, ignore_errors=True)
