"""Every error of ours has a row: a class without one has that of the class that it is a kind of."""

import subprocess
import sys

import pytest

from toolscript.core import errors
from toolscript.core.errors import ERROR_TABLE, ServerRejected, ToolscriptError, envelope_of
from toolscript.core.mcp_client.oauth.exchanges import Refused


def subclasses(kind: type[ToolscriptError]) -> set[type[ToolscriptError]]:
    return {kind}.union(*map(subclasses, kind.__subclasses__()))


@pytest.mark.requirement("TS-011")
def test_a_class_of_a_module_has_the_row_of_its_kind() -> None:
    error = Refused("auth.example refused: invalid_grant", "invalid_grant")
    assert ERROR_TABLE[Refused] is ERROR_TABLE[ServerRejected]
    assert (error.code, envelope_of(error)["error"]) != ("", None)
    for kind in subclasses(ToolscriptError):
        assert ERROR_TABLE[kind].exit_code == 2
    assert not [
        kind
        for kind in subclasses(ToolscriptError)
        if kind.__module__ == errors.__name__ and kind not in {*ERROR_TABLE}
    ]


@pytest.mark.requirement("TS-011")
def test_a_command_that_an_authorization_server_refuses_ends_with_a_message() -> None:
    program = (
        "import typer\n"
        "from toolscript.cli.app import run\n"
        "from toolscript.core.mcp_client.oauth.exchanges import Refused\n"
        "app = typer.Typer(pretty_exceptions_enable=False)\n"
        "@app.command()\n"
        "def login() -> None:\n    raise Refused('auth.example refused: invalid_grant', 'invalid_grant')\n"
        "run(app)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "error: auth.example refused: invalid_grant\n")
