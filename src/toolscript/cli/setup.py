"""`toolscript setup`: a dialogue from a fresh installation to a connected client, and the way back."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from toolscript.cli.options import AsJson
from toolscript.cli.output import NOTHING_FOUND, printable, say, show, spelled_out
from toolscript.core.errors import InvalidRequest, ToolscriptError

if TYPE_CHECKING:
    from toolscript.gateway.setup import Setup, SetupStep, StepName

STEPS = "import, trust, check, model, connect, autostart"
FIRST_SEARCH = 'toolscript search "what the tool should do"'


def add_setup(app: typer.Typer) -> None:
    @app.command()
    def setup(
        preview: Annotated[bool, typer.Option("--preview", help="Only show what each step would write.")] = False,
        yes: Annotated[
            bool, typer.Option("--yes", "-y", help="Take every step without asking, but trust no project's file.")
        ] = False,
        skip: Annotated[
            list[str] | None,
            typer.Option("--skip", metavar="STEP", help=f"Leave out a step: {STEPS}; repeatable."),
        ] = None,
        client: Annotated[
            list[str] | None,
            typer.Option("--client", metavar="NAME", help="Client to connect; repeatable. [those that are found]"),
        ] = None,
        undo: Annotated[
            bool, typer.Option("--undo", help="Take our entries out again, the last step first.")
        ] = False,
        step: Annotated[
            list[str] | None,
            typer.Option("--step", metavar="STEP", help="With --undo: only this step; repeatable."),
        ] = None,
        as_json: AsJson = False,
    ) -> None:
        """Import servers, connect clients and start at login: asks before each step; --undo takes them back."""
        if undo:
            _undo(step or [], preview=preview, yes=yes, as_json=as_json)
            return
        if step:
            raise InvalidRequest("--step goes with --undo", hint="--skip leaves a step out")
        _set_up(skip or [], client or [], preview=preview, yes=yes, as_json=as_json)


def _set_up(skip: list[str], clients: list[str], *, preview: bool, yes: bool, as_json: bool) -> None:
    from toolscript.gateway.setup import Setup

    asks = not preview and not yes and _is_terminal()
    results = []
    setup = Setup(clients=_known_clients(clients))
    for step in setup.steps(_known_steps(skip)):
        if not as_json:
            _show_step(step)
        done, error = "", ""
        if step.question and not preview:
            done, error = _take(step, yes=yes, asks=asks)
        if (done or error) and not as_json:
            for line in (done or f"not done: {error}").splitlines():
                say(f"   {printable(line)}")
        results.append(
            {"step": step.name, "title": step.title, "preview": list(step.preview), "done": done, "error": error}
        )
    if preview or yes or asks:
        end = "nothing was written" if preview else f"now: {_next_step(setup)}"
    else:
        end = "nothing was written (no terminal to ask in; --yes takes the steps)"
    show({"steps": results}, end, as_json=as_json)
    if any(result["error"] for result in results):
        raise typer.Exit(2)


def _next_step(setup: "Setup") -> str:
    if setup.has_servers:
        return f"{FIRST_SEARCH}; `toolscript setup --undo` takes it back"
    from toolscript.cli.gateway import EXAMPLE_CONFIG

    example = " ".join(EXAMPLE_CONFIG.split())
    return f"name a server in {setup.own_file}, such as {example}, then `toolscript list-servers`"


def _take(step: "SetupStep", *, yes: bool, asks: bool) -> tuple[str, str]:
    """Return what was done, or why it failed: one step that fails does not keep the others from being taken."""
    if yes and step.by_person:
        return "left out: a person has to review it", ""
    agreed = yes
    if asks:
        agreed = typer.confirm(f"   {printable(step.question)}", default=not step.by_person, err=True)
    try:
        return (step.apply() if agreed else step.decline() if asks else ""), ""
    except ToolscriptError as error:
        return "", f"{error.message} ({error.hint})"


def _show_step(step: "SetupStep") -> None:
    say(f"{'?' if step.question else '-'}  {printable(step.title)}")
    for line in step.preview:
        say(f"     {spelled_out(line)}")


def _undo(steps: list[str], *, preview: bool, yes: bool, as_json: bool) -> None:
    from toolscript.gateway.setup import steps_taken, undo_setup

    names = [
        name for name in steps_taken(flags={}) if not steps or name in steps or name.partition(" ")[0] in steps
    ]
    if not names:
        show({"undone": []}, "there is no step to take back", as_json=as_json)
        raise typer.Exit(NOTHING_FOUND)
    asks = not preview and not yes and _is_terminal()
    if not yes and not (asks and typer.confirm(f"take back {', '.join(names)}?", err=True)):
        why = "" if preview or asks else " (no terminal to ask in; --yes does it)"
        show({"undone": [], "would_undo": names}, f"would take back: {', '.join(names)}{why}", as_json=as_json)
        return
    done = undo_setup(names, flags={})
    for path in done.kept:
        say(f"{path} was changed since, and stays")
    for error in done.errors:
        say(f"not taken back: {printable(error)}")
    data = {"undone": list(done.steps), "kept": list(done.kept), "errors": list(done.errors)}
    show(data, f"taken back: {', '.join(done.steps) or 'nothing'}", as_json=as_json)
    if done.errors:
        raise typer.Exit(2)


def _known_steps(names: list[str]) -> "list[StepName]":
    from toolscript.gateway.setup import StepName

    try:
        return [StepName(name) for name in names]
    except ValueError:
        raise InvalidRequest(f"no step is called {', '.join(names)}"[:200], hint=f"one of {STEPS}") from None


def _known_clients(names: list[str]) -> list[str]:
    from toolscript.gateway.config.clients import Client

    unknown = [name for name in names if name not in list(Client)]
    if unknown:
        raise InvalidRequest(f"no client is called {unknown[0]!r}"[:200], hint=f"one of {', '.join(Client)}")
    return names


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()
