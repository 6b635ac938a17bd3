"""Config files of other MCP clients: their paths and their servers. Read-only."""

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import NamedTuple

from toolscript.core.errors import ConfigInvalid
from toolscript.gateway.config.entries import KEYS, TYPES, is_switched_off, read_entry, transport_of
from toolscript.gateway.config.jsonc import is_file, read_document, read_text
from toolscript.gateway.config.problems import Problem, Severity
from toolscript.gateway.config.secrets import count_secrets, host_of

_SAME = ("command", "args", "env", "cwd", "url")
OURSELVES = "toolscript"
# Claude Code's.
PROJECT_FILE = ".mcp.json"

# Keys of other clients that have no meaning here.
_THEIR_OWN = {"autoApprove", "alwaysAllow", "description", "dev", "gallery", "icon", "name", "timeout", "version"}
_INPUT = re.compile(r"\$\{input:([^{}:]+)\}")
_RUNNERS = {"uvx", "uv", "pipx", "python", "python3", "py"}


class Client(StrEnum):
    CLAUDE_DESKTOP = "claude-desktop"
    CLAUDE_CODE = "claude-code"
    CURSOR = "cursor"
    VS_CODE = "vscode"
    CODEX = "codex"


class Layout(StrEnum):
    """Location of the servers in a file."""

    MCP_SERVERS = "mcpServers"
    CLAUDE_CODE = "mcpServers, and projects.<folder>.mcpServers"
    SERVERS = "servers"
    SETTINGS = "mcp.servers"
    CODEX = "mcp_servers"


TITLES = {
    Client.CLAUDE_DESKTOP: "Claude Desktop",
    Client.CLAUDE_CODE: "Claude Code",
    Client.CURSOR: "Cursor",
    Client.VS_CODE: "VS Code",
    Client.CODEX: "Codex",
}


@dataclass(frozen=True)
class ClientConfig:
    """One file of one client. `project` is the folder that its relative paths and `${workspaceFolder}` mean."""

    client: Client
    path: Path
    layout: Layout
    project: Path
    of_project: bool = False

    @property
    def title(self) -> str:
        return TITLES[self.client] + (" (project)" if self.of_project else "")


@dataclass(frozen=True)
class Places:
    """Inputs that determine file locations."""

    home: Path
    project: Path
    platform: str
    environment: Mapping[str, str]

    def folder(self, variable: str, *otherwise: str) -> Path:
        named = self.environment.get(variable)
        return Path(named) if named else self.home.joinpath(*otherwise)

    @property
    def app_data(self) -> Path:
        """Folder of desktop programs' settings."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        if self.platform == "win32":
            return self.folder("APPDATA", "AppData", "Roaming")
        return self.folder("XDG_CONFIG_HOME", ".config")


def find_clients(home: Path, project: Path, platform: str, environment: Mapping[str, str]) -> list[ClientConfig]:
    """Return the existing files: the user's first, then the project's, in the order of the clients."""
    places = Places(home.absolute(), project.absolute(), platform, environment)
    known = [config for client in Client for config in client_files(client, places)]
    unique = {config.path: config for config in reversed(known) if is_file(config.path)}
    return sorted(
        unique.values(),
        key=lambda config: (config.of_project, list(Client).index(config.client), str(config.path)),
    )


def client_files(client: Client, places: Places) -> Iterator[ClientConfig]:
    """Yield every file a client may have, the most likely one first."""
    for file in _FILES[client](places):
        yield ClientConfig(client, file.path, file.layout, places.project, file.of_project)


class _File(NamedTuple):
    path: Path
    layout: Layout
    of_project: bool = False


def _claude_desktop(places: Places) -> Iterator[_File]:
    name = "claude_desktop_config.json"
    if places.platform == "win32":
        # The packaged program reads its own copy of the roaming folder, and nothing in the real one.
        packages = places.folder("LOCALAPPDATA", "AppData", "Local") / "Packages"
        for packaged in sorted(packages.glob("Claude_*/LocalCache/Roaming/Claude")):
            yield _File(packaged / name, Layout.MCP_SERVERS)
    yield _File(places.app_data / "Claude" / name, Layout.MCP_SERVERS)


def _claude_code(places: Places) -> Iterator[_File]:
    yield _File(places.folder("CLAUDE_CONFIG_DIR") / ".claude.json", Layout.CLAUDE_CODE)
    yield _File(places.project / PROJECT_FILE, Layout.MCP_SERVERS, of_project=True)


def _cursor(places: Places) -> Iterator[_File]:
    yield _File(places.home / ".cursor" / "mcp.json", Layout.MCP_SERVERS)
    yield _File(places.project / ".cursor" / "mcp.json", Layout.MCP_SERVERS, of_project=True)


def _vs_code(places: Places) -> Iterator[_File]:
    for product in ("Code", "Code - Insiders"):
        user = places.app_data / product / "User"
        yield _File(user / "mcp.json", Layout.SERVERS)
        yield from (_File(path, Layout.SERVERS) for path in sorted(user.glob("profiles/*/mcp.json")))
        yield _File(user / "settings.json", Layout.SETTINGS)
    yield _File(places.project / ".vscode" / "mcp.json", Layout.SERVERS, of_project=True)
    yield _File(places.project / ".vscode" / "settings.json", Layout.SETTINGS, of_project=True)


def _codex(places: Places) -> Iterator[_File]:
    yield _File(places.folder("CODEX_HOME", ".codex") / "config.toml", Layout.CODEX)
    yield _File(places.project / ".codex" / "config.toml", Layout.CODEX, of_project=True)


_FILES: dict[Client, Callable[[Places], Iterator[_File]]] = {
    Client.CLAUDE_DESKTOP: _claude_desktop,
    Client.CLAUDE_CODE: _claude_code,
    Client.CURSOR: _cursor,
    Client.VS_CODE: _vs_code,
    Client.CODEX: _codex,
}


def entry_from_codex(raw: Mapping[str, object]) -> dict[str, object]:
    """Convert a Codex entry: its names of environment variables become `${NAME}` references."""
    entry = {key: _literal(raw[key]) for key in _SAME if key in raw}
    entry["env"] = _object(entry.get("env")) | {
        name: f"${{{name}}}" for name in _variable_names(raw.get("env_vars"))
    }
    entry["headers"] = _headers(raw)
    entry["includeTools"] = raw.get("enabled_tools")
    # An empty list allows no tool in Codex. Here it would allow all.
    entry["excludeTools"] = ["*"] if raw.get("enabled_tools") == [] else raw.get("disabled_tools")
    entry["disabled"] = raw.get("enabled") is False
    milliseconds = raw.get("startup_timeout_ms")
    seconds = milliseconds / 1000 if isinstance(milliseconds, int) else None
    entry["startupTimeout"] = raw.get("startup_timeout_sec", seconds)
    entry["callTimeout"] = raw.get("tool_timeout_sec")
    return entry


def _headers(raw: Mapping[str, object]) -> dict[str, object]:
    headers = _object(_literal(raw.get("http_headers")))
    headers |= {name: f"${{{variable}}}" for name, variable in _object(raw.get("env_http_headers")).items()}
    bearer = raw.get("bearer_token_env_var")
    return headers | ({"Authorization": f"Bearer ${{{bearer}}}"} if isinstance(bearer, str) else {})


def _variable_names(names: object) -> list[str]:
    listed = names if isinstance(names, list) else []
    values = [item.get("name") if isinstance(item, Mapping) else item for item in listed]
    return [name for name in values if isinstance(name, str)]


def _object(value: object) -> dict[str, object]:
    return dict(value) if isinstance(value, Mapping) else {}


def _literal(value: object) -> object:
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, list):
        return [_literal(item) for item in value]
    return {key: _literal(item) for key, item in value.items()} if isinstance(value, Mapping) else value


@dataclass(frozen=True)
class FoundServer:
    """A server of another client. `skip` is the reason not to import it, `notes` what needs attention."""

    name: str
    source: ClientConfig
    entry: Mapping[str, object] = field(repr=False)
    skip: str = ""
    notes: tuple[str, ...] = ()

    @property
    def secrets(self) -> int:
        return count_secrets(self.entry)


def read_clients(configs: Iterable[ClientConfig]) -> tuple[list[FoundServer], list[Problem]]:
    """Return the servers of all files. An unreadable file becomes a problem, not an error."""
    servers: list[FoundServer] = []
    problems: list[Problem] = []
    for config in configs:
        try:
            servers += read_client(config)
        except ConfigInvalid as error:
            problems.append(Problem("", config.path, error.message, error.hint, Severity.WARNING))
    return servers, problems


def read_client(config: ClientConfig) -> list[FoundServer]:
    """Return the servers of one file, with variables as references and values unchanged."""
    read = {Layout.CODEX: _from_toml}.get(config.layout, _from_json)
    return [_read_server(name, raw, source) for name, raw, source in read(config)]


def tidy(raw: Mapping[str, object]) -> dict[str, object]:
    """Normalise an entry to our non-empty keys, so that equivalent entries are equal."""
    entry = {key: raw[key] for key in KEYS if raw.get(key) not in (None, "", [], {}, False) and key != "enabled"}
    type_ = str(entry.pop("type", ""))
    command, url = str(entry.get("command", "")), str(entry.get("url", ""))
    declared = TYPES.get(type_, type_)
    if declared and declared != transport_of("", command, url):
        entry["type"] = str(declared)
    return entry | ({"disabled": True} if is_switched_off(raw) else {})


def _read_server(name: str, raw: object, source: ClientConfig) -> FoundServer:
    if not isinstance(raw, Mapping):
        return FoundServer(name, source, {}, skip="is not an object")
    if source.layout is Layout.CODEX:
        entry, notes = tidy(entry_from_codex(raw)), list[str]()
    else:
        entry, notes = _convert_entry(raw, source)
    reason = _invalid_reason(entry, source.path) or ("is Toolscript itself" if is_toolscript(name, entry) else "")
    return FoundServer(name, source, entry, reason, tuple(notes))


def _convert_entry(raw: Mapping[str, object], source: ClientConfig) -> tuple[dict[str, object], list[str]]:
    inputs: dict[str, str] = {}

    def ours(text: str) -> str:
        return _INPUT.sub(lambda match: _variable(match[1], inputs), text).replace("${env:", "${")

    entry = tidy(_map_texts({key: value for key, value in raw.items() if key in KEYS}, ours))
    milliseconds = raw.get("timeout")
    # Claude Code documents milliseconds. Others use seconds, or do not document it.
    if source.client is Client.CLAUDE_CODE and isinstance(milliseconds, int) and milliseconds >= 1000:
        entry["callTimeout"] = milliseconds / 1000
    notes = [f"set {variable}, which was the input {input_name!r}" for input_name, variable in inputs.items()]
    left = sorted(key for key in raw if key not in KEYS and key not in _THEIR_OWN)
    return entry, [*notes, f"without {', '.join(left)}"] if left else notes


def _variable(text: str, inputs: dict[str, str]) -> str:
    name = re.sub(r"[^A-Za-z0-9]", "_", text).upper()
    inputs[text] = f"INPUT_{name}" if name[:1].isdigit() else name
    return f"${{{inputs[text]}}}"


def _map_texts(value: object, change: Callable[[str], str]) -> dict[str, object]:
    def changed(node: object) -> object:
        if isinstance(node, str):
            return change(node)
        if isinstance(node, list):
            return [changed(part) for part in node]
        return {key: changed(part) for key, part in node.items()} if isinstance(node, Mapping) else node

    whole = changed(value)
    return whole if isinstance(whole, dict) else {}


class _AnyVariable(Mapping[str, str]):
    """An environment in which every variable is set: a missing one may be set later."""

    def __init__(self, value: str) -> None:
        self._value = value

    def __getitem__(self, key: str) -> str:
        return self._value

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _invalid_reason(entry: dict[str, object], file: Path) -> str:
    reasons = []
    # A variable in a url may stand for all of its beginning, or for a host or a port.
    for value in ("http://set", "1"):
        anything = _AnyVariable(value)
        _, problems = read_entry("server", {**entry, "disabled": False}, file, anything, anything.__getitem__)
        reasons.append(next((problem.message for problem in problems if problem.severity is Severity.ERROR), ""))
    return "" if "" in reasons else reasons[0]


def is_toolscript(name: str, entry: Mapping[str, object]) -> bool:
    """Return whether the entry starts Toolscript itself, which would recurse."""
    args = entry.get("args")
    command, words = str(entry.get("command", "")), [str(arg) for arg in args] if isinstance(args, list) else []
    program = PureWindowsPath(PurePosixPath(command).name).stem.lower()
    if program in _RUNNERS:
        words = words[next((index + 1 for index, word in enumerate(words) if _names_us(word)), len(words)) :]
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
    for name, raw in _entries_in(document.value, _SECTIONS[config.layout]):
        yield name, raw, config
    if config.layout is Layout.CLAUDE_CODE:
        projects = document.value.get("projects")
        folders = (str(config.project), config.project.as_posix(), str(config.project.resolve()))
        for name, raw in _entries_in(projects, tuple((folder, "mcpServers") for folder in dict.fromkeys(folders))):
            yield name, raw, replace(config, of_project=True)


_SECTIONS: dict[Layout, tuple[tuple[str, ...], ...]] = {
    Layout.MCP_SERVERS: (("mcpServers",),),
    Layout.CLAUDE_CODE: (("mcpServers",),),
    Layout.SERVERS: (("servers",), ("mcpServers",)),
    Layout.SETTINGS: (("mcp.servers",), ("mcp", "servers")),
}


def _entries_in(value: object, sections: tuple[tuple[str, ...], ...]) -> Iterator[tuple[str, object]]:
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
    for name, raw in _entries_in(value, (("mcp_servers",),)):
        yield name, raw, config
