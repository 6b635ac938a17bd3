"""Environment for the commands of our pages."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.npm_servers_installed import entry_point
from tests.support.reserved_ports import reserved_port

NPM_SERVERS = ("filesystem", "memory")


@pytest.fixture
def port() -> Iterator[str]:
    with reserved_port() as kept:
        yield str(kept)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return the home folder of a Cursor user with npm servers."""
    home = tmp_path / "home"
    (home / ".cursor").mkdir(parents=True)
    args = {name: [entry_point(f"server-{name}")] for name in NPM_SERVERS}
    args["filesystem"].append(str(home))
    servers = {name: {"command": "node", "args": value} for name, value in args.items()}
    (home / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": servers}), "utf-8")
    return home
