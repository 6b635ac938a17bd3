"""config import|connect: the configs a person has already."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from toolscript.cli.gateway_options import AsJson
from toolscript.cli.output import colour_wanted, say, show
from toolscript.cli.tables import table

NOTHING_FOUND = 1
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")]
Preview = Annotated[bool, typer.Option("--preview", help="Only show what would be written.")]


def config_commands() -> typer.Typer:
    group = typer.Typer(help="Config files: ours and those of other clients.", no_args_is_help=True)
    _import(group)
    _connect(group)
    return group


def _import(group: typer.Typer) -> None:
    @group.command("import")
    def import_(
        clients: Annotated[
            list[str] | None,
            typer.Argument(help="claude-desktop, claude-code, cursor, vscode, codex; none: all that are found."),
        ] = None,
        to: Annotated[Path | None, typer.Option(help="File to write (default: ~/.toolscript.json).")] = None,
        project: Annotated[
            bool, typer.Option("--project", help="Also those of this folder's project; look at them first.")
        ] = False,
        preview: Preview = False,
        yes: Yes = False,
        as_json: AsJson = False,
    ) -> None:
        """Take over the servers of Claude, Cursor, VS Code and Codex. Shows them first; secrets stay hidden."""
        from toolscript.gateway.configs import plan_import, write_import

        plan, rows, problems = plan_import(clients=clients or (), target=to, project=project)
        for problem in problems:
            say(f"warning: {problem}")
        data: dict[str, object] = {"target": str(plan.target), "servers": [row._asdict() for row in rows]}
        if not rows:
            show({**data, "written": []}, "no other client's servers were found", as_json=as_json)
            raise typer.Exit(NOTHING_FOUND)
        if not as_json:
            head = ["Server", "From", "Started by", "What happens"]
            sys.stdout.write(table(head, [list(row) for row in rows], colour=colour_wanted()) + "\n")
        agreed = bool(plan.added) and not preview and _agrees(f"write {len(plan.added)} to {plan.target}?", yes)
        written = write_import(plan) if agreed else ()
        text = f"{len(written)} servers written to {plan.target}" if written else "nothing written"
        show({**data, "written": list(written)}, text, as_json=as_json)


def _connect(group: typer.Typer) -> None:
    @group.command()
    def connect(
        client: Annotated[str, typer.Argument(help="claude-desktop, claude-code, cursor, vscode or codex.")],
        undo: Annotated[bool, typer.Option("--undo", help="Take our entry out again.")] = False,
        http: Annotated[
            bool, typer.Option("--http", help="Write the address and the token of the gateway that runs.")
        ] = False,
        preview: Preview = False,
        yes: Yes = False,
        as_json: AsJson = False,
    ) -> None:
        """Write `toolscript mcp` into a client's config, with a backup beside it."""
        from toolscript.gateway import configs

        plan = configs.connect(client, undo=undo, write=False, http=http)
        write = not preview and _agrees(f"{plan}; go on?", yes)
        if write:
            plan = configs.connect(client, undo=undo, write=True, http=http)
        data = {"client": client, "file": str(plan.path), "change": str(plan.change), "written": write}
        done = f"done (restart the client): {plan}" if plan.change != "same" else str(plan)
        show(data, done if write else f"nothing written, this would be: {plan}", as_json=as_json)


def _agrees(question: str, yes: bool) -> bool:
    """Nobody is asked in a pipe: there, only `--yes` writes."""
    if yes or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return yes
    return typer.confirm(question, err=True)
