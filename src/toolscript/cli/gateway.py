"""trust: a project's config file starts nothing before somebody has looked at it."""

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolscript.cli.gateway_options import AsJson
from toolscript.cli.output import colour_wanted, say, show
from toolscript.cli.tables import printable, table
from toolscript.errors import InvalidRequest

if TYPE_CHECKING:
    from toolscript.gateway.trusting import TrustQuestion

NOTHING_FOUND = 1
NONE_HERE = "no config file of a project is here; your own needs no trust"


def trust_command(app: typer.Typer) -> None:
    @app.command()
    def trust(
        file: Annotated[
            Path | None, typer.Argument(help="A project's config file; none: the one of this folder.")
        ] = None,
        yes: Annotated[bool, typer.Option("--yes", "-y", help="Trust it without asking.")] = False,
        forget: Annotated[bool, typer.Option("--forget", help="Trust it no longer.")] = False,
        listed: Annotated[bool, typer.Option("--list", help="Show which files are trusted.")] = False,
        as_json: AsJson = False,
    ) -> None:
        """Show what a project's config file would start, and trust it as it is. A change asks again."""
        if listed:
            _show_list(as_json=as_json)
            return
        if forget:
            _forget(file, as_json=as_json)
            return
        from toolscript.gateway.trusting import decide_trust, trust_question

        question = trust_question(flags={}, file=file)
        if question is None:
            say(NONE_HERE)
            raise typer.Exit(NOTHING_FOUND)
        _show_question(question)
        trusted = yes or _asks(f"trust {question.path}?")
        decide_trust(question, trusted=trusted)
        text = f"trusted: {question.path}" if trusted else "not trusted: nothing of it is started"
        show({"file": str(question.path), "trusted": trusted}, text, as_json=as_json)


def offer_trust(flags: Mapping[str, object]) -> None:
    """In a terminal, once for each content of a file. Elsewhere the answer names what was left out."""
    if not _is_terminal():
        return
    from toolscript.gateway.trusting import decide_trust, trust_question

    question = trust_question(flags=flags)
    if question is None or not question.starts or question.standing not in ("unknown", "changed"):
        return
    changed = " has changed since you trusted it and" if question.standing == "changed" else ""
    say(f"{question.path}{changed} would start:")
    _show_question(question)
    decide_trust(question, trusted=typer.confirm("trust it?", err=True))


def say_untrusted(flags: Mapping[str, object]) -> None:
    """Where an answer has no room for it."""
    from toolscript.gateway.trusting import trust_question

    question = trust_question(flags=flags)
    if question is not None and question.starts and question.standing != "trusted":
        command = f"toolscript trust {shlex.quote(str(question.path))}"
        say(f"hint: the servers of {question.path} are left out: `{command}`")


def _show_question(question: "TrustQuestion") -> None:
    for one in question.starts:
        say(f"  {printable(one.server)}: {printable(one.start)}")
        if one.given:
            say(f"      given: {printable(one.given)}")
    if not question.starts:
        say("it names no server")


def _asks(question: str) -> bool:
    if not _is_terminal():
        raise InvalidRequest("nobody can be asked here", hint="a person has to run this in a terminal")
    return typer.confirm(question, err=True)


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _forget(file: Path | None, *, as_json: bool) -> None:
    from toolscript.gateway.trusting import forget_trust

    found = forget_trust(flags={}, file=file)
    if found is None:
        say(NONE_HERE)
        raise typer.Exit(NOTHING_FOUND)
    path, known = found
    text = f"no longer trusted: {path}" if known else f"nothing was known of {path}"
    show({"file": str(path), "forgotten": known}, text, as_json=as_json)


def _show_list(*, as_json: bool) -> None:
    from toolscript.gateway.trusting import list_trusted

    records = list_trusted()
    rows = [["trusted" if one.trusted else "refused", one.path] for one in records]
    text = table(["", "File"], rows, colour=colour_wanted()) if rows else "no project's config file is trusted"
    show({"files": [{"file": one.path, "trusted": one.trusted} for one in records]}, text, as_json=as_json)
