"""Trust in a project's config file: shows what it would start before any of it runs."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from toolscript.core.errors import ConfigInvalid, NotFound
from toolscript.gateway.config.entries import PASSTHROUGH
from toolscript.gateway.config.jsonc import parse, read_text
from toolscript.gateway.config.read import ConfigPlace, server_entries, shared_passthrough
from toolscript.gateway.config.trust import TrustRecord, TrustState
from toolscript.gateway.config.variables import secrets_in, variables_in
from toolscript.gateway.discovery import place_of
from toolscript.gateway.settings import load_gateway_settings


@dataclass(frozen=True)
class Start:
    """A server as written in the file, variables not expanded: its command, and its environment and headers.

    It contains everything that decides what runs: another `PATH` makes the same command another program.
    """

    server: str
    start: str
    given: str


@dataclass(frozen=True)
class TrustQuestion:
    """`text` is the content that was shown: trust applies to it, even if the file changes a moment later."""

    path: Path
    state: TrustState
    starts: tuple[Start, ...]
    text: str = field(repr=False)


def trust_question(*, flags: Mapping[str, object], file: Path | None = None) -> TrustQuestion | None:
    """Return the question about this folder's project file, or about `file`; None if there is no such file."""
    place = place_of(load_gateway_settings(flags))
    if file is not None:
        question = _question(place, named(file))
        if question is None:
            raise NotFound(f"there is no config file {file}", hint="name the .toolscript.json of a project")
        return question
    try:
        questions = [_question(place, path) for path in place.paths() if not place.is_own(path)]
    except ConfigInvalid:
        # An unreadable file starts nothing, and reading the config reports it.
        return None
    return next(filter(None, questions), None)


def _question(place: ConfigPlace, path: Path) -> TrustQuestion | None:
    text = read_text(path, only_ours=True)
    if text is None:
        return None
    return TrustQuestion(path, place.store.state_of(path, text), tuple(_starts(text, path)), text)


def named(file: Path) -> Path:
    """Resolve the folder, so that a path with `..` or a link means the same file."""
    return file.absolute().parent.resolve() / file.name


def decide_trust(question: TrustQuestion, *, trusted: bool) -> None:
    ConfigPlace().store.decide(question.path, question.text, trusted=trusted)


def forget_trust(*, flags: Mapping[str, object], file: Path | None) -> tuple[Path, bool] | None:
    """Forget this file, or this folder's; return its path and whether there was a record."""
    place = place_of(load_gateway_settings(flags))
    own = [path for path in place.paths() if not place.is_own(path)]
    path = named(file) if file is not None else next(iter(own), None)
    return None if path is None else (path, place.store.forget(path))


def list_trusted() -> list[TrustRecord]:
    return [*ConfigPlace().store.records()]


def _starts(text: str, path: Path) -> Iterator[Start]:
    document = parse(text, path)
    for name, raw in sorted(server_entries(document, path).items()):
        entry = shared_passthrough(raw, document)
        if isinstance(entry, Mapping):
            yield Start(name, _start(entry), "; ".join(_environment_of(entry)))


def _start(entry: Mapping[str, object]) -> str:
    args = entry.get("args")
    words = [str(entry.get("command") or ""), *(map(str, args) if isinstance(args, list) else ())]
    where = f" (in {entry['cwd']})" if entry.get("cwd") else ""
    return str(entry["url"]) if entry.get("url") else shlex.join(words) + where


def _environment_of(entry: Mapping[str, object]) -> Iterator[str]:
    for key in ("env", "headers", "oauth"):
        value = entry.get(key)
        if isinstance(value, Mapping):
            yield from (f"{name}={item}" for name, item in value.items())
        elif value:
            yield f"{key}: {value}"
    if passed := entry.get(PASSTHROUGH):
        yield f"of your environment: {', '.join(map(str, passed)) if isinstance(passed, list) else passed}"
    if referenced := sorted(variables_in(entry)):
        yield f"the values of {', '.join(referenced)}"
    if secrets := sorted(secrets_in(entry)):
        yield f"your secrets {', '.join(secrets)}"
