"""What a project's config file would start, shown before anything of it is."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from toolscript.adapters.config_files.here import ConfigPlace
from toolscript.adapters.config_files.jsonc import parse, read_text
from toolscript.adapters.config_files.read import server_entries
from toolscript.adapters.config_files.trust import Standing, TrustRecord
from toolscript.adapters.config_files.variables import variables_in
from toolscript.errors import NotFound
from toolscript.gateway.asking import place_of
from toolscript.settings import load_gateway_settings


@dataclass(frozen=True)
class Start:
    """A server as the file has it, with nothing filled in: how it is started, and what it is given of yours."""

    server: str
    start: str
    variables: str


@dataclass(frozen=True)
class TrustQuestion:
    """`text` is what was read and shown: it is what is trusted, whatever the file says a moment later."""

    path: Path
    standing: Standing
    starts: tuple[Start, ...]
    text: str = field(repr=False)


def trust_question(*, flags: Mapping[str, object], file: Path | None = None) -> TrustQuestion | None:
    """Whether a file of this place waits for somebody to look at it; with `file`, what that one would start."""
    place = place_of(load_gateway_settings(flags)) if file is None else ConfigPlace()
    paths = [file.absolute()] if file is not None else place.paths()
    for path in paths:
        if file is None and place.is_own(path):
            continue
        text = read_text(path, only_ours=True)
        if text is not None:
            return TrustQuestion(path, place.store.standing(path, text), tuple(_starts(text, path)), text)
    if file is not None:
        raise NotFound(f"there is no config file {file}", hint="name the .toolscript.json of a project")
    return None


def decide_trust(question: TrustQuestion, *, trusted: bool) -> None:
    ConfigPlace().store.decide(question.path, question.text, trusted=trusted)


def forget_trust(file: Path) -> bool:
    return ConfigPlace().store.forget(file)


def list_trusted() -> list[TrustRecord]:
    return [*ConfigPlace().store.records()]


def _starts(text: str, path: Path) -> Iterator[Start]:
    for name, raw in sorted(server_entries(parse(text, path), path).items()):
        entry = raw if isinstance(raw, Mapping) else {}
        args = entry.get("args")
        words = [str(entry.get("command") or ""), *(map(str, args) if isinstance(args, list) else ())]
        start = str(entry["url"]) if entry.get("url") else shlex.join(words)
        yield Start(name, start, ", ".join(sorted(variables_in(entry))))
