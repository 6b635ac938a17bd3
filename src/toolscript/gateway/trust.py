"""Trust in a project's config file: what it would start, shown before anything of it runs."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from toolscript.core.errors import ConfigInvalid, NotFound
from toolscript.gateway.config.entries import PASSTHROUGH
from toolscript.gateway.config.jsonc import parse, read_text
from toolscript.gateway.config.read import ConfigPlace, server_entries, shared_passthrough
from toolscript.gateway.config.trust import Standing, TrustRecord
from toolscript.gateway.config.variables import variables_in
from toolscript.gateway.discovery import place_of
from toolscript.gateway.settings import load_gateway_settings


@dataclass(frozen=True)
class Start:
    """A server as the file has it, with nothing filled in: how it is started, and what it is given.

    All that decides what runs stands in it: a `PATH` of its own makes another program of the same command.
    """

    server: str
    start: str
    given: str


@dataclass(frozen=True)
class TrustQuestion:
    """`text` is what was read and shown: it is what is trusted, whatever the file says a moment later."""

    path: Path
    standing: Standing
    starts: tuple[Start, ...]
    text: str = field(repr=False)


def trust_question(*, flags: Mapping[str, object], file: Path | None = None) -> TrustQuestion | None:
    """Whether a file of this place waits for somebody to look at it; with `file`, what that one would start."""
    place = place_of(load_gateway_settings(flags))
    if file is not None:
        question = _question(place, named(file))
        if question is None:
            raise NotFound(f"there is no config file {file}", hint="name the .toolscript.json of a project")
        return question
    try:
        questions = [_question(place, path) for path in place.paths() if not place.is_own(path)]
    except ConfigInvalid:
        # A file that cannot be read starts nothing, and whoever reads the others says so.
        return None
    return next(filter(None, questions), None)


def _question(place: ConfigPlace, path: Path) -> TrustQuestion | None:
    text = read_text(path, only_ours=True)
    if text is None:
        return None
    return TrustQuestion(path, place.store.standing(path, text), tuple(_starts(text, path)), text)


def named(file: Path) -> Path:
    """As a command run in its folder finds it: a name that goes by `..` or a link means the same file."""
    return file.absolute().parent.resolve() / file.name


def decide_trust(question: TrustQuestion, *, trusted: bool) -> None:
    ConfigPlace().store.decide(question.path, question.text, trusted=trusted)


def forget_trust(*, flags: Mapping[str, object], file: Path | None) -> tuple[Path, bool] | None:
    """Of this file, or of the one of this place: which it was, and whether anything was known of it."""
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
            yield Start(name, _start(entry), "; ".join(_given(entry)))


def _start(entry: Mapping[str, object]) -> str:
    args = entry.get("args")
    words = [str(entry.get("command") or ""), *(map(str, args) if isinstance(args, list) else ())]
    where = f" (in {entry['cwd']})" if entry.get("cwd") else ""
    return str(entry["url"]) if entry.get("url") else shlex.join(words) + where


def _given(entry: Mapping[str, object]) -> Iterator[str]:
    for key in ("env", "headers"):
        value = entry.get(key)
        if isinstance(value, Mapping):
            yield from (f"{name}={one}" for name, one in value.items())
        elif value:
            yield f"{key}: {value}"
    if passed := entry.get(PASSTHROUGH):
        yield f"of your environment: {', '.join(map(str, passed)) if isinstance(passed, list) else passed}"
    if names := sorted(variables_in([entry.get(key) for key in ("command", "args", "cwd", "url")])):
        yield f"the values of {', '.join(names)}"
