"""`toolscript gateway`, `mcp`, `config` and `trust`: run the gateway, and manage its config files."""

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolscript.cli.gateway_tables import show_servers
from toolscript.cli.options import AsJson, ConfigFile, DataDir, Model, Port, flags
from toolscript.cli.output import NOTHING_FOUND, colour_wanted, printable, say, show, table
from toolscript.core.errors import InvalidRequest
from toolscript.core.mcp_client.model import ServerStatus
from toolscript.gateway.json import health_to_json

if TYPE_CHECKING:
    from toolscript.gateway.model import GatewayHealth
    from toolscript.gateway.trust import TrustQuestion


Yes = Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")]
Preview = Annotated[bool, typer.Option("--preview", help="Only show what would be written.")]

NONE_HERE = "no config file of a project is here; your own needs no trust"
NOT_RUNNING = 1
MAX_NAMED = 5


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
        from toolscript.gateway.client_configs import plan_import
        from toolscript.gateway.config.importing import apply_import

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
        written = apply_import(plan) if agreed else ()
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
        from toolscript.gateway import client_configs

        plan = client_configs.connect(client, undo=undo, write=False, http=http)
        write = not preview and _agrees(f"{plan}; go on?", yes)
        if write:
            plan = client_configs.connect(client, undo=undo, write=True, http=http)
        data = {"client": client, "file": str(plan.path), "change": str(plan.change), "written": write}
        done = f"done (restart the client): {plan}" if plan.change != "same" else str(plan)
        show(data, done if write else f"nothing written, this would be: {plan}", as_json=as_json)


def _agrees(question: str, yes: bool) -> bool:
    """Nobody is asked in a pipe: there, only `--yes` writes."""
    if yes or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return yes
    return typer.confirm(question, err=True)


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
        from toolscript.gateway.trust import decide_trust, trust_question

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
    from toolscript.gateway.trust import decide_trust, trust_question

    question = trust_question(flags=flags)
    if question is None or not question.starts or question.standing not in ("unknown", "changed"):
        return
    changed = " has changed since you trusted it and" if question.standing == "changed" else ""
    say(f"{question.path}{changed} would start:")
    _show_question(question)
    decide_trust(question, trusted=typer.confirm("trust it?", err=True))


def say_untrusted(flags: Mapping[str, object]) -> None:
    """Where an answer has no room for it."""
    from toolscript.gateway.trust import trust_question

    question = trust_question(flags=flags)
    if question is not None and question.starts and question.standing != "trusted":
        command = f"toolscript trust {shlex.quote(str(question.path))}"
        say(f"hint: the servers of {question.path} are left out: `{command}`")


def _show_question(question: "TrustQuestion") -> None:
    for start in question.starts:
        say(f"  {printable(start.server)}: {printable(start.start)}")
        if start.given:
            say(f"      given: {printable(start.given)}")
    if not question.starts:
        say("it names no server")


def _asks(question: str) -> bool:
    if not _is_terminal():
        raise InvalidRequest("nobody can be asked here", hint="a person has to run this in a terminal")
    return typer.confirm(question, err=True)


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _forget(file: Path | None, *, as_json: bool) -> None:
    from toolscript.gateway.trust import forget_trust

    found = forget_trust(flags={}, file=file)
    if found is None:
        say(NONE_HERE)
        raise typer.Exit(NOTHING_FOUND)
    path, known = found
    text = f"no longer trusted: {path}" if known else f"nothing was known of {path}"
    show({"file": str(path), "forgotten": known}, text, as_json=as_json)


def _show_list(*, as_json: bool) -> None:
    from toolscript.gateway.trust import list_trusted

    records = list_trusted()
    rows = [["trusted" if record.trusted else "refused", record.path] for record in records]
    text = table(["", "File"], rows, colour=colour_wanted()) if rows else "no project's config file is trusted"
    show(
        {"files": [{"file": record.path, "trusted": record.trusted} for record in records]}, text, as_json=as_json
    )


def serve_commands(app: typer.Typer) -> None:
    app.add_typer(_gateway(), name="gateway")

    @app.command()
    def mcp(config: ConfigFile = None, data_dir: DataDir = None, model: Model = None) -> None:
        """Serve search_tools, describe_tool and call_tool to one MCP client over stdin and stdout."""
        from toolscript.gateway.serve import serve_stdio

        serve_stdio(flags=flags(config=config, data_dir=data_dir, model=model))


def _gateway() -> typer.Typer:
    group = typer.Typer(help="A gateway that stays: HTTP and MCP on this machine.", no_args_is_help=True)

    @group.command()
    def start(
        port: Port = None,
        background: Annotated[bool, typer.Option("--background", "-b", help="Come back once it serves.")] = False,
        config: ConfigFile = None,
        data_dir: DataDir = None,
        model: Model = None,
        as_json: AsJson = False,
    ) -> None:
        """Start the gateway, on loopback only. Ctrl-C or `toolscript gateway stop` ends it."""

        def on_ready(url: str) -> None:
            show({"url": url, "mcp": f"{url}/mcp"}, f"gateway at {url}, MCP at {url}/mcp", as_json=as_json)
            # It stays: whoever reads this from a file or a pipe would wait for its end.
            sys.stdout.flush()

        from toolscript.gateway import daemon

        given = flags(config=config, data_dir=data_dir, model=model, port=port)
        offer_trust(given)
        daemon.start(flags=given, on_ready=on_ready, background=background)

    @group.command()
    def status(config: ConfigFile = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
        """Show whether a gateway runs for these config files, and how it is doing. Exit code 1: none runs."""
        from toolscript.gateway import daemon

        running, health = daemon.status(flags=flags(config=config, data_dir=data_dir))
        if health is None:
            show({"running": False}, "no gateway is running for these config files", as_json=as_json)
            raise typer.Exit(NOT_RUNNING)
        data = {"running": True, "url": running and running.url, **health_to_json(health)}
        show(data, _status_line(health), as_json=as_json)
        if not as_json:
            show_servers(health.servers)

    @group.command()
    def stop(config: ConfigFile = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
        """Stop the gateway of these config files, and the servers it started."""
        from toolscript.gateway import daemon

        stopped = daemon.stop(flags=flags(config=config, data_dir=data_dir))
        show({"stopped": stopped.pid}, f"stopped the gateway at {stopped.url}", as_json=as_json)

    _env(group)
    return group


def _status_line(health: "GatewayHealth") -> str:
    ready = sum(server_state.status is ServerStatus.READY for server_state in health.servers)
    down = [server_state.name for server_state in health.servers if server_state.status is ServerStatus.FAILED]
    state = "running" if health.ready else "starting"
    by = f"by meaning and words ({health.model})" if health.semantic else "by words alone"
    why = f": {health.note}" if health.note and not health.semantic else ""
    lost = f", down: {', '.join(down[:MAX_NAMED])}{', ...' if len(down) > MAX_NAMED else ''}" if down else ""
    of = f"{ready} of {len(health.servers)} servers"
    return f"{state}: {health.items} items of {of}{lost}; searched {by}{why}"


def _env(group: typer.Typer) -> None:
    @group.command()
    def env(config: ConfigFile = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
        """Print address and token of the running gateway, for a shell to read. Exit code 1: none runs."""
        from toolscript.gateway.daemon import find

        running = find(flags=flags(config=config, data_dir=data_dir))
        if running is None:
            say("no gateway is running for these config files\nhint: `toolscript gateway start` starts one")
            raise typer.Exit(NOT_RUNNING)
        lines = [
            f"export TOOLSCRIPT_GATEWAY_URL={running.url}",
            f"export TOOLSCRIPT_GATEWAY_TOKEN={shlex.quote(running.token)}",
        ]
        show({"url": running.url, "token": running.token}, "\n".join(lines), as_json=as_json)
