"""Servers out of other clients' files, in our own format."""

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath, PureWindowsPath

from toolscript.adapters.config_files.clients import Client, ClientConfig, Layout
from toolscript.adapters.config_files.codex import entry_from_codex
from toolscript.adapters.config_files.entries import KEYS, TYPES, is_switched_off, read_entry, transport_of
from toolscript.adapters.config_files.jsonc import read_document, read_text
from toolscript.adapters.config_files.masking import count_secrets, host_of
from toolscript.adapters.config_files.problems import Problem, Severity
from toolscript.errors import ConfigInvalid

OURSELVES = "toolscript"

# What other clients keep for themselves, and nobody misses here.
_THEIR_OWN = {"autoApprove", "alwaysAllow", "description", "dev", "gallery", "icon", "name", "timeout", "version"}
_INPUT = re.compile(r"\$\{input:([^{}:]+)\}")
_RUNNERS = {"uvx", "uv", "pipx", "python", "python3", "py"}


@dataclass(frozen=True)
class FoundServer:
    """A server as another client has it. `skip` says why it is not to be taken, `notes` what to look after."""

    name: str
    source: ClientConfig
    entry: Mapping[str, object] = field(repr=False)
    skip: str = ""
    notes: tuple[str, ...] = ()

    @property
    def secrets(self) -> int:
        return count_secrets(self.entry)


def read_clients(configs: Iterable[ClientConfig]) -> tuple[list[FoundServer], list[Problem]]:
    """The servers of all files. A file that cannot be read is a problem and not the end."""
    found: list[FoundServer] = []
    problems: list[Problem] = []
    for config in configs:
        try:
            found += read_client(config)
        except ConfigInvalid as error:
            problems.append(Problem("", config.path, error.message, error.hint, Severity.WARNING))
    return found, problems


def read_client(config: ClientConfig) -> list[FoundServer]:
    """The servers of one file, with variables as references and values as they are."""
    read = {Layout.CODEX: _from_toml}.get(config.layout, _from_json)
    return [_found(name, raw, source) for name, raw, source in read(config)]


def tidy(raw: Mapping[str, object]) -> dict[str, object]:
    """Our keys only, and only those that say something: two entries that mean the same are the same."""
    entry = {key: raw[key] for key in KEYS if raw.get(key) not in (None, "", [], {}, False) and key != "enabled"}
    type_ = str(entry.pop("type", ""))
    command, url = str(entry.get("command", "")), str(entry.get("url", ""))
    given = TYPES.get(type_, type_)
    if given and given != transport_of("", command, url):
        entry["type"] = str(given)
    return entry | ({"disabled": True} if is_switched_off(raw) else {})


def _found(name: str, raw: object, source: ClientConfig) -> FoundServer:
    if not isinstance(raw, Mapping):
        return FoundServer(name, source, {}, skip="is not an object")
    if source.layout is Layout.CODEX:
        entry, notes = tidy(entry_from_codex(raw)), list[str]()
    else:
        entry, notes = _from_client(raw, source)
    reason = _why_not(entry, source.path) or ("is Toolscript itself" if _is_ourselves(name, entry) else "")
    return FoundServer(name, source, entry, reason, tuple(notes))


def _from_client(raw: Mapping[str, object], source: ClientConfig) -> tuple[dict[str, object], list[str]]:
    inputs: dict[str, str] = {}

    def ours(text: str) -> str:
        return _INPUT.sub(lambda asked: _variable(asked[1], inputs), text).replace("${env:", "${")

    entry = tidy(_each_text({key: value for key, value in raw.items() if key in KEYS}, ours))
    milliseconds = raw.get("timeout")
    # Claude Code's documentation gives the unit. Others count in seconds, or do not say.
    if source.client is Client.CLAUDE_CODE and isinstance(milliseconds, int) and milliseconds >= 1000:
        entry["callTimeout"] = milliseconds / 1000
    notes = [f"set {variable}, which was the input {asked!r}" for asked, variable in inputs.items()]
    left = sorted(key for key in raw if key not in KEYS and key not in _THEIR_OWN)
    return entry, [*notes, f"without {', '.join(left)}"] if left else notes


def _variable(asked: str, inputs: dict[str, str]) -> str:
    name = re.sub(r"[^A-Za-z0-9]", "_", asked).upper()
    inputs[asked] = f"INPUT_{name}" if name[:1].isdigit() else name
    return f"${{{inputs[asked]}}}"


def _each_text(value: object, change: Callable[[str], str]) -> dict[str, object]:
    def changed(one: object) -> object:
        if isinstance(one, str):
            return change(one)
        if isinstance(one, list):
            return [changed(part) for part in one]
        return {key: changed(part) for key, part in one.items()} if isinstance(one, Mapping) else one

    whole = changed(value)
    return whole if isinstance(whole, dict) else {}


class _AnyVariable(Mapping[str, str]):
    """An environment in which everything is set: what is missing today may be set tomorrow."""

    def __init__(self, value: str) -> None:
        self._value = value

    def __getitem__(self, key: str) -> str:
        return self._value

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _why_not(entry: dict[str, object], file: Path) -> str:
    reasons = []
    # A variable in a url may stand for all of its beginning, or for a host or a port.
    for value in ("http://set", "1"):
        _, problems = read_entry("server", {**entry, "disabled": False}, file, _AnyVariable(value))
        reasons.append(next((one.message for one in problems if one.severity is Severity.ERROR), ""))
    return "" if "" in reasons else reasons[0]


def _is_ourselves(name: str, entry: Mapping[str, object]) -> bool:
    """A gateway that starts itself would never end."""
    args = entry.get("args")
    command, words = str(entry.get("command", "")), [str(one) for one in args] if isinstance(args, list) else []
    program = PureWindowsPath(PurePosixPath(command).name).stem.lower()
    if program in _RUNNERS:
        words = words[next((at + 1 for at, word in enumerate(words) if _names_us(word)), len(words)) :]
        return "mcp" in words
    if entry.get("url"):
        return name == OURSELVES and host_of(str(entry["url"])) in {"localhost", "127.0.0.1", "::1"}
    return program == OURSELVES and "mcp" in words


def _names_us(word: str) -> bool:
    return re.fullmatch(rf"{OURSELVES}(\[.*\])?([=<>@~!].*)?", word) is not None


_Raw = Iterator[tuple[str, object, ClientConfig]]


def _from_json(config: ClientConfig) -> _Raw:
    document = read_document(config.path)
    if document is None or not isinstance(document.value, Mapping):
        raise ConfigInvalid(f"{config.path} is not a JSON object", hint="it is left out")
    for name, raw in _inside(document.value, _SECTIONS[config.layout]):
        yield name, raw, config
    if config.layout is Layout.CLAUDE_CODE:
        projects = document.value.get("projects")
        folders = (str(config.project), config.project.as_posix(), str(config.project.resolve()))
        for name, raw in _inside(projects, tuple((folder, "mcpServers") for folder in dict.fromkeys(folders))):
            yield name, raw, replace(config, of_project=True)


_SECTIONS: dict[Layout, tuple[tuple[str, ...], ...]] = {
    Layout.MCP_SERVERS: (("mcpServers",),),
    Layout.CLAUDE_CODE: (("mcpServers",),),
    Layout.SERVERS: (("servers",), ("mcpServers",)),
    Layout.SETTINGS: (("mcp.servers",), ("mcp", "servers")),
}


def _inside(value: object, sections: tuple[tuple[str, ...], ...]) -> Iterator[tuple[str, object]]:
    for section in sections:
        inner = value
        for key in section:
            inner = inner.get(key) if isinstance(inner, Mapping) else None
        if isinstance(inner, Mapping):
            yield from inner.items()


def _from_toml(config: ClientConfig) -> _Raw:
    try:
        value = tomllib.loads(read_text(config.path, only_ours=True) or "")
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        where = re.search(r"\(at .*\)", str(error))
        message = f"{config.path} is not TOML{' ' + where[0] if where else ''}"
        raise ConfigInvalid(message, hint="it is left out; correct the file") from None
    for name, raw in _inside(value, (("mcp_servers",),)):
        yield name, raw, config
