"""Asks before something is deleted."""

import sys

import typer

from toolscript.errors import InvalidRequest


def confirm(question: str, *, yes: bool) -> None:
    """`yes` answers for whoever cannot be asked, such as a script."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidRequest(f"{question} Nobody can be asked: this is no terminal.", hint="add --yes to do it")
    typer.confirm(question, abort=True, err=True)
