"""Where the commands of our pages are run."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kept_ports import kept_port
from tests.support.npm_servers_installed import entry_point

NPM_SERVERS = ("filesystem", "memory")


@pytest.fixture
def port() -> Iterator[str]:
    with kept_port() as kept:
        yield str(kept)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Of somebody who uses Cursor with servers from npm."""
    home = tmp_path / "home"
    (home / ".cursor").mkdir(parents=True)
    args = {name: [entry_point(f"server-{name}")] for name in NPM_SERVERS}
    args["filesystem"].append(str(home))
    servers = {name: {"command": "node", "args": given} for name, given in args.items()}
    (home / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": servers}), "utf-8")
    return home
