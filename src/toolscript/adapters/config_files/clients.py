"""Where other clients keep their servers. Their files are only read here."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from toolscript.adapters.config_files.jsonc import is_file


class Client(StrEnum):
    CLAUDE_DESKTOP = "claude-desktop"
    CLAUDE_CODE = "claude-code"
    CURSOR = "cursor"
    VS_CODE = "vscode"
    CODEX = "codex"


class Layout(StrEnum):
    """Where in a file the servers are."""

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
    """What decides where files are."""

    home: Path
    project: Path
    platform: str
    environment: Mapping[str, str]

    def folder(self, variable: str, *otherwise: str) -> Path:
        named = self.environment.get(variable)
        return Path(named) if named else self.home.joinpath(*otherwise)

    @property
    def app_data(self) -> Path:
        """Where desktop programs keep their settings."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        if self.platform == "win32":
            return self.folder("APPDATA", "AppData", "Roaming")
        return self.folder("XDG_CONFIG_HOME", ".config")


def find_clients(home: Path, project: Path, platform: str, environment: Mapping[str, str]) -> list[ClientConfig]:
    """The files that exist: those of the user first, then those of the project, in the order of the clients."""
    places = Places(home.absolute(), project.absolute(), platform, environment)
    known = [one for client in Client for one in client_files(client, places)]
    unique = {one.path: one for one in reversed(known) if is_file(one.path)}
    return sorted(unique.values(), key=lambda one: (one.of_project, list(Client).index(one.client), str(one.path)))


def client_files(client: Client, places: Places) -> Iterator[ClientConfig]:
    """Every file a client may have, the one it is most likely to read first."""
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
    yield _File(places.project / ".mcp.json", Layout.MCP_SERVERS, of_project=True)


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
