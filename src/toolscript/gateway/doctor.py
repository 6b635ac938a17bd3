"""doctor: checks of a gateway's environment, each finding with its fix."""

import asyncio
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolscript.core.embedding.download_failures import Refusals
from toolscript.core.embedding.model_runtime import GAIN, INSTALL, is_installed
from toolscript.core.embedding.static_table import BUILTIN
from toolscript.core.errors import ConfigInvalid, SetupError
from toolscript.core.mcp_client.model import ServerState, ServerStatus, Transport
from toolscript.core.values import OnProgress
from toolscript.gateway.approvals import Review, Status, difference_of, is_recent
from toolscript.gateway.config.curation import curation_of
from toolscript.gateway.config.jsonc import parse, read_text
from toolscript.gateway.config.problems import Problem, Severity
from toolscript.gateway.config.read import server_entries
from toolscript.gateway.config.rules import call_rules_of
from toolscript.gateway.config.secrets import places_of_secrets
from toolscript.gateway.config.variables import is_secret_name
from toolscript.gateway.discovery import place_of, running_here, with_secrets
from toolscript.gateway.history import History, activity_file
from toolscript.gateway.joining import find_running
from toolscript.gateway.model import HOW_TO_GET_SERVERS, Need
from toolscript.gateway.runtime import load_embedder, open_alone
from toolscript.gateway.settings import NO_ACTIVITY, NO_MODEL, GatewaySettings, environment, load_gateway_settings

# Of a difference; `toolscript review show` has the rest.
MAX_LINES = 6
# Of secrets in clear text.
MAX_NAMED = 5


@dataclass(frozen=True)
class Finding:
    """`code` stays the same over versions. `fix` is empty when the check passes."""

    code: str
    ok: bool
    message: str
    fix: str = ""


def examine(*, flags: Mapping[str, object], on_progress: OnProgress) -> list[Finding]:
    settings = load_gateway_settings(flags)
    files = list(_files(settings))
    readable = all(finding.code != "CONFIG_UNREADABLE" for finding in files)
    return [
        *files,
        *_folder(settings.data_folder),
        *_activity(settings),
        *_model(settings),
        *_running(settings),
        *(asyncio.run(_servers(settings, on_progress)) if readable else ()),
    ]


def _files(settings: GatewaySettings) -> Iterator[Finding]:
    try:
        config = with_secrets(place_of(settings), settings.data_folder).read(environment())
    except ConfigInvalid as error:
        yield Finding("CONFIG_UNREADABLE", False, error.message, error.hint)
        return
    yield from _entries([*config.problems, *curation_of(config)[1], *call_rules_of(config)[2]])
    if not config.servers and not config.problems:
        yield Finding(
            "NO_SERVERS",
            False,
            "no config file names a server",
            HOW_TO_GET_SERVERS,
        )
    elif config.servers:
        names = ", ".join(str(path) for path in config.files)
        yield Finding("CONFIG", True, f"{len(config.servers)} servers in {names}")
    for path in config.files:
        yield from _clear_text(path)


def _clear_text(path: Path) -> Iterator[Finding]:
    """Yield a finding for the secrets that a config file contains, and how to move the first of them out of it."""
    text = read_text(path, only_ours=True)
    entries = {} if text is None else server_entries(parse(text, path), path)
    places = [
        (name, place)
        for name, entry in sorted(entries.items())
        if isinstance(entry, Mapping)
        for place in places_of_secrets(entry)
    ]
    if places:
        named = [f"{name} ({place})" for name, place in places[:MAX_NAMED]]
        more = [f"and {len(places) - MAX_NAMED} more"] if len(places) > MAX_NAMED else []
        what = "secret is" if len(places) == 1 else "secrets are"
        secret = _name_for(*places[0])
        yield Finding(
            "SECRETS",
            True,
            f"{len(places)} {what} in clear text in {path}: {', '.join([*named, *more])}",
            f"`toolscript secrets set {secret}`, then write ${{keyring:{secret}}} in place of the value",
        )


def _name_for(server: str, place: str) -> str:
    """Return a name for a secret: that of its variable, or one of its server."""
    key, _, name = place.partition(".")
    if key == "env" and is_secret_name(name):
        return name
    words = re.findall(r"[A-Za-z0-9]+", f"{server} {name or 'secret'}".upper())
    return re.sub(r"^(?=\d)", "_", "_".join(words))[:64]


def _entries(problems: Sequence[Problem]) -> Iterator[Finding]:
    for problem in problems:
        code = "CONFIG_ENTRY" if problem.severity is Severity.ERROR else "CONFIG_WARNING"
        where = f"{problem.server} in {problem.file}" if problem.server else str(problem.file)
        yield Finding(code, False, f"{where}: {problem.message}", problem.fix)


def _folder(folder: Path) -> Iterator[Finding]:
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if existing.is_dir() and os.access(existing, os.W_OK):
        yield Finding("DATA_DIR", True, f"{folder} can be written")
    else:
        yield Finding(
            "DATA_DIR",
            False,
            f"{folder} cannot be written: every start embeds all tools again",
            "choose another with --data-dir or TOOLSCRIPT_DATA_DIR",
        )


def _activity(settings: GatewaySettings) -> Iterator[Finding]:
    if settings.gateway_activity == NO_ACTIVITY:
        yield Finding("ACTIVITY", True, "off: searches and calls are not logged (TOOLSCRIPT_GATEWAY_ACTIVITY)")
        return
    log = History(activity_file(settings))
    try:
        log.check()
        state = log.state()
    except SetupError as error:
        yield Finding("ACTIVITY", False, f"{error.message}; searches and calls are not logged", error.hint)
        return
    size = f"{state.rows:,} entries, {state.used_bytes / 1e6:.1f} MB" if state else "no entry yet"
    yield Finding("ACTIVITY", True, f"{log.path}: {size}")


def _model(settings: GatewaySettings) -> Iterator[Finding]:
    if settings.search_model == NO_MODEL:
        yield Finding("MODEL", True, "none: keyword search alone (TOOLSCRIPT_SEARCH_MODEL)")
        return
    if "search_model" not in settings.sources and not is_installed():
        # Nobody asked for the model that is the default where one can run.
        yield Finding("MODEL", True, f"{BUILTIN}, the model of the package; {INSTALL} {GAIN}")
        return
    try:
        model = load_embedder(settings, again=True).model
    except SetupError as error:
        yield Finding("MODEL", False, f"{error.message}; searches use the built-in model", error.hint)
    else:
        Refusals(settings.data_folder / "models").forget()
        yield Finding("MODEL", True, f"{model.name}, {model.dimensions} dimensions")


def _running(settings: GatewaySettings) -> Iterator[Finding]:
    running = running_here(settings)
    if running is None:
        yield Finding("GATEWAY", True, "not running; the next command starts it")
    elif find_running(settings) is None:
        yield Finding(
            "GATEWAY",
            False,
            f"process {running.pid} runs but is not used: it does not listen, or has another model",
            "`toolscript gateway stop`, then start it again",
        )
    else:
        yield Finding("GATEWAY", True, f"running at {running.url}")


async def _servers(settings: GatewaySettings, on_progress: OnProgress) -> list[Finding]:
    try:
        async with open_alone(settings, Need(model=False, uses_cache=False), on_progress) as gateway:
            states = [state for state in await gateway.servers() if state not in gateway.left_out]
            waiting = [review for review in await gateway.reviews() if review.waits]
            return [*map(_server, states), *map(_review, waiting)]
    except ConfigInvalid as error:
        return [Finding("TABLES", False, error.message, error.hint)]


def _review(review: Review) -> Finding:
    """Return a finding for what waits for a decision. It is a fault if it is held, or changed in the last days."""
    state = "held" if review.held else "shown"
    # What is held is not said, either: agents read this, too.
    lines = [] if review.held else difference_of(review).splitlines()
    more = f" (and {len(lines) - MAX_LINES} more lines)" if len(lines) > MAX_LINES else ""
    return Finding(
        "APPROVAL",
        not review.held and (review.status is Status.NEW or not is_recent(review)),
        f"{review.tool} is {review.status}, and {state}{': ' if lines else ''}{' '.join(lines[:MAX_LINES])}{more}",
        f"`toolscript review show {review.tool}`, then approve or reject it",
    )


def _server(state: ServerState) -> Finding:
    if state.answers:
        how = f"protocol {state.protocol}" if state.protocol else f"{state.status}"
        return Finding("SERVER", True, f"{state.name}: {state.tools} tools, {how}")
    if state.status is ServerStatus.SIGN_IN_NEEDED:
        return Finding("SIGN_IN", False, f"{state.name}: {state.status}", state.error)
    return Finding("SERVER", False, f"{state.name}: {state.status}, {state.error}", _fix(state))


def _fix(state: ServerState) -> str:
    if "command not found" in state.error:
        return "install it, or write its whole path: it is not on the PATH that servers get"
    if state.transport is Transport.STDIO:
        return "run its command by hand to see its output; a variable it needs may be missing (envPassthrough)"
    if "401" in state.error:
        return "it refuses the credentials of its entry: correct the token in `headers`"
    return "check that its address answers, and which headers it requires"
