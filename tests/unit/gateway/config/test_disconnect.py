"""Our entry is taken out of a client's config that was changed since; all else stays as it is written."""

import tomllib
from pathlib import Path

import pytest

from tests.unit.gateway.config.builders import write
from toolscript.core.errors import ConfigInvalid
from toolscript.gateway.config.connect import Change, apply_connect, connect_client, disconnect_client

pytestmark = pytest.mark.requirement("TS-001")

FILES = {"cursor": ".cursor/mcp.json", "vscode": ".config/Code/User/mcp.json", "codex": ".codex/config.toml"}
COMMENTED = """{
\t// mine
\t"servers" : {
\t\t"a": {"command": "a"}, /* first */
\t\t"b": {"command": "b"} // second
\t},
\t"inputs": [1,2,], // odd
}
"""
TABLES = """# mine
model = "o5"  # kept

[mcp_servers.a] # first
command = "a"

# about b
[mcp_servers.b]
args = [
    "[mcp_servers.toolscript]", # not ours
]
"""


def connected(home: Path, client: str, text: str) -> Path:
    path = home / FILES[client]
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, text)
    apply_connect(connect_client(client, home, home / "project", "linux", {}))
    return path


def disconnect(home: Path, client: str) -> None:
    plan = disconnect_client(client, home, home / "project", "linux", {})
    assert plan.change is Change.REMOVE
    apply_connect(plan)


@pytest.mark.parametrize(
    ("client", "text", "old", "new"),
    [
        ("vscode", COMMENTED, "// second", "// third"),
        ("vscode", COMMENTED, '"a": {"command": "a"}, /* first */', "// none"),
        ("vscode", COMMENTED.replace("\n", "\r\n"), '"b"', '"c"'),
        ("cursor", '{"mcpServers": {"a": {"url": "x"}}}', '"x"', '"y"'),
        ("cursor", '{\n    "mcpServers": {\n        "a": {}\n    }, "more":1}', '"more":1', '"more" : 2'),
        ("codex", TABLES, "# about b", "# about b, too"),
        ("codex", TABLES, 'command = "a"\n', 'command = "x"\nenv = { A = "1" }\n'),
        ("codex", TABLES.replace("\n", "\r\n"), '"o5"', '"o6"'),
    ],
)
def test_a_change_elsewhere_in_the_file_stays_and_nothing_else_is_left(
    tmp_path: Path, client: str, text: str, old: str, new: str
) -> None:
    path = connected(tmp_path, client, text)
    assert old in text
    _replace(path, old, new)
    disconnect(tmp_path, client)
    assert _lines(path.read_bytes().decode()) == _lines(text.replace(old, new))


def _replace(path: Path, old: str, new: str) -> None:
    content = path.read_bytes()
    assert old.encode() in content
    path.write_bytes(content.replace(old.encode(), new.encode()))


def _lines(text: str) -> list[str]:
    """Return the lines, where an object in one line is as one in many."""
    return [line.strip() for line in text.replace("{", "{\n").replace("}", "\n}").splitlines() if line.strip()]


@pytest.mark.parametrize("where", ["before", "after"])
def test_servers_that_came_since_stay_with_their_comments(tmp_path: Path, where: str) -> None:
    path = connected(tmp_path, "cursor", '{"mcpServers": {\n  // none yet\n}}')
    new = '"new": {"command": "x"}'
    if where == "before":
        _replace(path, '"toolscript": {', f'{new}, // came\n  "toolscript": {{')
    else:
        _replace(path, "}\n  }}", f"}},\n  {new} // came\n  }}}}")
    disconnect(tmp_path, "cursor")
    left = [line.strip() for line in path.read_text().splitlines()]
    assert left == ['{"mcpServers": {', "// none yet", f"{new} // came", "}}"]


def test_a_comment_at_the_end_stays(tmp_path: Path) -> None:
    path = connected(tmp_path, "cursor", "{}")
    write(path, path.read_text() + "\n// theirs")
    disconnect(tmp_path, "cursor")
    assert path.read_text() == "{}\n// theirs"


@pytest.mark.parametrize(
    "changed",
    [
        '[mcp_servers]\na = { command = "x" } # theirs\ntoolscript = { command = "toolscript", args = ["mcp"] }\n',
        """mcp_servers.toolscript.command = "toolscript"
mcp_servers.toolscript.args = ["mcp"]
mcp_servers.a = { command = "x" } # theirs
""",
        """[mcp_servers.a]
command = "x" # theirs
[mcp_servers."toolscript"]
args = [
"mcp",
]
command = "toolscript"

[mcp_servers.toolscript.tools.search_tools]
approval_mode = "auto"
""",
    ],
)
def test_an_entry_of_ours_that_codex_wrote_anew_is_taken_out(tmp_path: Path, changed: str) -> None:
    path = connected(tmp_path, "codex", "")
    write(path, changed)
    disconnect(tmp_path, "codex")
    assert tomllib.loads(path.read_text()) == {"mcp_servers": {"a": {"command": "x"}}}
    assert "# theirs" in path.read_text()
    assert "toolscript" not in path.read_text()


def test_what_cannot_be_taken_out_without_harm_is_left_with_the_reason(tmp_path: Path) -> None:
    path = connected(tmp_path, "codex", "")
    text = 'mcp_servers = { toolscript = { command = "toolscript", args = ["mcp"] } }\n'
    write(path, text)
    with pytest.raises(ConfigInvalid, match="without harm") as caught:
        disconnect(tmp_path, "codex")
    assert "by hand" in caught.value.hint
    assert path.read_text() == text


@pytest.mark.parametrize("client", ["vscode", "codex"])
def test_an_entry_that_is_not_ours_any_more_stays(tmp_path: Path, client: str) -> None:
    path = connected(tmp_path, client, COMMENTED if client == "vscode" else TABLES)
    key = '"command": ' if client == "vscode" else "command = "
    _replace(path, f'{key}"toolscript"', f'{key}"mine"')
    text = path.read_text()
    plan = disconnect_client(client, tmp_path, tmp_path / "project", "linux", {})
    with pytest.raises(ConfigInvalid, match="another server called 'toolscript', which stays"):
        apply_connect(plan)
    assert path.read_text() == text
