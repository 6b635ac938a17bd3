"""A command line with one command builds that command alone; with any other word, all of them."""

import subprocess
import sys

import pytest
import typer

from toolscript.cli.app import COMMANDS, build_cli


def names(only: str = "") -> set[str]:
    return set(vars(typer.main.get_command(build_cli(only)))["commands"])


def test_the_tables_name_every_command() -> None:
    assert names() == {name for listed in COMMANDS for name in listed}


@pytest.mark.parametrize("only", [name for listed in COMMANDS for name in listed])
def test_the_named_command_is_built_without_the_others(only: str) -> None:
    assert only in names(only)
    assert len(names(only)) <= 5


@pytest.mark.parametrize("word", ["", "--help", "nonsense"])
def test_without_a_known_command_all_are_built(word: str) -> None:
    assert names(word) == names()


def test_a_search_does_not_import_the_other_commands() -> None:
    code = (
        "import sys; from toolscript.cli.app import build_cli; build_cli('search');"
        " print([name for name in sys.modules if name.startswith('toolscript.cli.')])"
    )
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert "toolscript.cli.search" in printed
    assert not any(f"toolscript.cli.{name}" in printed for name in ("evaluate", "skills", "documents", "sync"))
