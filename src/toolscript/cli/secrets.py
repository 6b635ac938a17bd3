"""`toolscript secrets`: values that config files reference by name, in the system keyring or a private file."""

import getpass
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from toolscript.cli.options import AsJson, DataDir, flags
from toolscript.cli.output import NOTHING_FOUND, colour_wanted, require_person, say, show, table
from toolscript.core.errors import InvalidRequest, NotFound

if TYPE_CHECKING:
    from pathlib import Path

    from toolscript.gateway.secret_store import Secrets

# A person may have to unlock the keyring first.
UNLOCK_SECONDS = 60.0

Name = Annotated[str, typer.Argument(help="Letters, digits, `_`, `.` and `-`, such as GITHUB_TOKEN.")]


def secrets_commands() -> typer.Typer:
    group = typer.Typer(
        help="Secrets for config files: ${keyring:NAME} stands for one. They are in the system keyring, or in a "
        "file that only you can read.",
        no_args_is_help=True,
    )
    _set(group)
    _list(group)
    _remove(group)
    return group


def _set(group: typer.Typer) -> None:
    @group.command("set")
    def set_(name: Name, data_dir: DataDir = None, as_json: AsJson = False) -> None:
        """Keep a secret, which is typed unseen or read from standard input. Servers that use it are restarted."""
        _require_name(name)
        require_person("the value of a secret", f"toolscript secrets set {name}")
        secrets = _open(data_dir, may_ask=sys.stdin.isatty())
        secrets.set(name, _value(name))
        place = secrets.place_of(name)
        show({"name": name, "place": place}, f"{name} is in {place}", as_json=as_json)
        if not as_json:
            say(f"hint: write ${{keyring:{name}}} in a config file in place of the value")


def _list(group: typer.Typer) -> None:
    @group.command("list")
    def list_(data_dir: DataDir = None, as_json: AsJson = False) -> None:
        """Show the names of the secrets, and where they are; never a value. Exit code 1: there are none."""
        secrets = _open(data_dir)
        found = [{"name": name, "place": secrets.place_of(name)} for name in secrets.names()]
        rows = [[secret["name"], secret["place"]] for secret in found]
        text = table(["Secret", "Place"], rows, colour=colour_wanted()) if rows else "no secret is set"
        show({"secrets": found}, text, as_json=as_json)
        if not found:
            raise typer.Exit(NOTHING_FOUND)


def _remove(group: typer.Typer) -> None:
    @group.command("remove")
    def remove(name: Name, data_dir: DataDir = None, as_json: AsJson = False) -> None:
        """Remove a secret. Servers that use it are stopped."""
        _require_name(name)
        require_person("the end of a secret", f"toolscript secrets remove {name}")
        if not _open(data_dir, may_ask=sys.stdin.isatty()).remove(name):
            raise NotFound(f"no secret is called {name}", hint="`toolscript secrets list` shows their names")
        show({"removed": name}, f"removed {name}", as_json=as_json)


def _open(data_dir: "Path | None", *, may_ask: bool = False) -> "Secrets":
    from toolscript.gateway.secret_store import open_secret_store
    from toolscript.gateway.settings import load_gateway_settings
    from toolscript.gateway.system_keyring import KEYRING_SECONDS

    settings = load_gateway_settings(flags(data_dir=data_dir))
    seconds = UNLOCK_SECONDS if may_ask else KEYRING_SECONDS
    return open_secret_store(settings.data_folder, keyring_seconds=seconds, may_ask=may_ask)


def _require_name(name: str) -> None:
    from toolscript.gateway.config.variables import NAME_RULE, is_secret_name

    if not is_secret_name(name):
        raise InvalidRequest("this cannot be the name of a secret", hint=f"a name is {NAME_RULE}")


def _value(name: str) -> str:
    """Return the value without the line break at its end, which `echo` writes."""
    if sys.stdin.isatty():
        return getpass.getpass(f"{name}: ")
    try:
        value = sys.stdin.read()
    except UnicodeDecodeError:
        raise InvalidRequest(f"the value of {name} is not text", hint="encode it, as with base64") from None
    return value.removesuffix("\n").removesuffix("\r")
