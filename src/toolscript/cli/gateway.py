"""`toolscript gateway`, `mcp`, `config` and `trust`: run the gateway, and manage its config files."""

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolscript.cli.autostart import add_autostart
from toolscript.cli.gateway_tables import show_servers
from toolscript.cli.options import Alone, AsJson, ConfigFile, DataDir, Model, Port, flags
from toolscript.cli.output import (
    NOTHING_FOUND,
    colour_wanted,
    is_watched,
    printable,
    require_person,
    say,
    show,
    spelled_out,
    table,
)
from toolscript.core.errors import NotFound
from toolscript.core.mcp_client.model import ServerStatus
from toolscript.gateway.json import health_to_json, without_words

if TYPE_CHECKING:
    from toolscript.gateway.model import GatewayHealth
    from toolscript.gateway.trust import TrustQuestion


Yes = Annotated[bool, typer.Option("--yes", "-y", help="Write without asking for confirmation.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be written.")]

NONE_HERE = "this folder has no project config file; your own needs no trust"
EXAMPLE_CONFIG = """\
{
  "mcpServers": {
    "files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "${userHome}"]}
  }
}"""
NOT_RUNNING = 1
MAX_NAMED = 5


class Scope(StrEnum):
    USER = "user"
    PROJECT = "project"


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
            typer.Argument(help="claude-desktop, claude-code, cursor, vscode, codex; none: all clients found."),
        ] = None,
        to: Annotated[Path | None, typer.Option(help="File to write (default: ~/.toolscript.json).")] = None,
        project: Annotated[
            bool,
            typer.Option("--project", help="Also import the servers of this folder's project; review them first."),
        ] = False,
        dry_run: DryRun = False,
        yes: Yes = False,
        as_json: AsJson = False,
    ) -> None:
        """Import the servers of Claude, Cursor, VS Code and Codex. Shows them first, without secrets."""
        from toolscript.gateway.client_configs import plan_import
        from toolscript.gateway.config.importing import apply_import

        plan, rows, problems = plan_import(clients=clients or (), target=to, project=project)
        for problem in problems:
            say(f"warning: {problem}")
        data: dict[str, object] = {"target": str(plan.target), "servers": [row._asdict() for row in rows]}
        if not rows:
            _show_no_clients(data, clients or (), project=project, as_json=as_json)
            raise typer.Exit(NOTHING_FOUND)
        if not as_json:
            head = ["Server", "From", "Started by", "What happens"]
            sys.stdout.write(table(head, [list(row) for row in rows], colour=colour_wanted()) + "\n")
        wanted = bool(plan.added) and not dry_run
        if wanted and project and yes:
            # They count as the user's own from then on, which need no trust.
            require_person("an import from a project", "toolscript config import --project")
        agreed = wanted and _agrees(f"write {len(plan.added)} to {plan.target}?", yes)
        asks = _how_to_agree() if wanted else ""
        written = apply_import(plan) if agreed else ()
        text = f"{len(written)} servers written to {plan.target}" if written else f"nothing written{asks}"
        # What came with a repository is not asked before the user uses it.
        signed_out = [] if project else _signed_out(plan.target, written)
        show({**data, "written": list(written), "sign_in": signed_out}, text, as_json=as_json)
        for name in () if as_json else signed_out:
            say(f"sign in: `toolscript login {name}`")


def _signed_out(file: Path, servers: Sequence[str]) -> list[str]:
    if not servers:
        return []
    from toolscript.gateway.signin import find_signed_out

    return find_signed_out(file, servers)


def _show_no_clients(data: Mapping[str, object], clients: Sequence[str], *, project: bool, as_json: bool) -> None:
    """Show where an import looked, and how to do without one."""
    from toolscript.gateway.client_configs import searched_files

    files = searched_files(clients=clients, project=project)
    searched = [str(config.path) for config in files]
    show({**data, "written": [], "searched": searched}, "no other client's servers were found", as_json=as_json)
    if as_json:
        return
    say("looked in:")
    for config in files:
        say(f"  {config.title}: {config.path}")
    if not project:
        say("hint: add --project for the files of this folder's project, such as .mcp.json or .cursor/mcp.json")
    say(f"hint: without another client, write {data['target']} yourself, then run `toolscript list-servers`:")
    say(EXAMPLE_CONFIG)


def _connect(group: typer.Typer) -> None:
    @group.command()
    def connect(
        client: Annotated[str, typer.Argument(help="claude-desktop, claude-code, cursor, vscode or codex.")],
        undo: Annotated[bool, typer.Option("--undo", help="Remove our entry again.")] = False,
        http: Annotated[
            bool,
            typer.Option("--http", help="Write the running gateway's address, and a token for this client alone."),
        ] = False,
        direct: Annotated[
            bool,
            typer.Option(
                "--direct", help="Give the client all tools themselves, where it has tool search of its own."
            ),
        ] = False,
        scope: Annotated[
            Scope,
            typer.Option(help="The client's config of yours, or that of this folder's project."),
        ] = Scope.USER,
        dry_run: DryRun = False,
        yes: Yes = False,
        as_json: AsJson = False,
    ) -> None:
        """Write `toolscript mcp` into a client's config, with a backup beside it."""
        from toolscript.gateway import client_configs
        from toolscript.gateway.config import connect as client_files

        options = {"undo": undo, "http": http, "direct": direct}
        connect_it = partial(client_configs.connect, client, **options, scope=client_files.Scope(scope))
        plan = connect_it(write=False)
        write = not dry_run and _agrees(f"{plan}; continue?", yes)
        if write:
            plan = connect_it(write=True)
        data = {"client": client, "file": str(plan.path), "change": str(plan.change), "written": write}
        done = f"done (restart the client): {plan}" if plan.change != "same" else str(plan)
        asks = "" if dry_run else _how_to_agree()
        show(data, done if write else f"nothing written{asks}, this would be: {plan}", as_json=as_json)


def _agrees(question: str, yes: bool) -> bool:
    """Ask for confirmation on a terminal; elsewhere only `--yes` agrees."""
    if yes or not _is_terminal():
        return yes
    return typer.confirm(question, err=True)


def _how_to_agree() -> str:
    """Name the option that agrees, where there is no terminal to ask in."""
    return "" if _is_terminal() else " (no terminal to ask in; --yes writes)"


def trust_command(app: typer.Typer) -> None:
    @app.command()
    def trust(
        file: Annotated[
            Path | None, typer.Argument(help="A project's config file; none: the one of this folder.")
        ] = None,
        yes: Annotated[
            bool,
            typer.Option("--yes", "-y", help="Trust it without a question, in a terminal."),
        ] = False,
        forget: Annotated[bool, typer.Option("--forget", help="Revoke the trust.")] = False,
        listed: Annotated[bool, typer.Option("--list", help="Show which files are trusted.")] = False,
        as_json: AsJson = False,
    ) -> None:
        """Show what a project's config file would start, and trust its content. A change needs trust again."""
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
        require_person(f"trust in {question.path}", "toolscript trust", asks=not yes)
        trusted = yes or typer.confirm(f"trust {question.path}?", err=True)
        decide_trust(question, trusted=trusted)
        text = f"trusted: {question.path}" if trusted else "not trusted: none of its servers is started"
        show({"file": str(question.path), "trusted": trusted}, text, as_json=as_json)


def offer_trust(flags: Mapping[str, object]) -> None:
    """Ask for trust on a terminal, once per content of a file. Elsewhere the answer names the excluded servers."""
    if not _is_terminal():
        return
    from toolscript.gateway.trust import decide_trust, trust_question

    question = trust_question(flags=flags)
    if question is None or not question.starts or question.state not in ("unknown", "changed"):
        return
    changed = " has changed since you trusted it and" if question.state == "changed" else ""
    say(f"{question.path}{changed} would start:")
    _show_question(question)
    decide_trust(question, trusted=typer.confirm("trust it?", err=True))


def say_untrusted(flags: Mapping[str, object]) -> None:
    """Print a hint about untrusted servers, where the answer has no field for it."""
    from toolscript.gateway.trust import trust_question

    question = trust_question(flags=flags)
    if question is not None and question.starts and question.state != "trusted":
        command = f"toolscript trust {shlex.quote(str(question.path))}"
        say(f"hint: the servers of {question.path} are left out: `{command}`")


def _show_question(question: "TrustQuestion") -> None:
    for start in question.starts:
        say(f"  {spelled_out(start.server)}: {spelled_out(start.start)}")
        if start.given:
            say(f"      given: {spelled_out(start.given)}")
    if not question.starts:
        say("it names no server")


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _forget(file: Path | None, *, as_json: bool) -> None:
    from toolscript.gateway.trust import forget_trust

    forgotten = forget_trust(flags={}, file=file)
    if forgotten is None:
        say(NONE_HERE)
        raise typer.Exit(NOTHING_FOUND)
    path, had_record = forgotten
    text = f"no longer trusted: {path}" if had_record else f"there was no decision about {path}"
    show({"file": str(path), "forgotten": had_record}, text, as_json=as_json)


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
    def mcp(
        direct: Annotated[
            bool, typer.Option("--direct", help="List all tools themselves, for a client that searches them.")
        ] = False,
        config: ConfigFile = None,
        data_dir: DataDir = None,
        model: Model = None,
        alone: Alone = False,
    ) -> None:
        """Serve one MCP client over stdin and stdout: tools to find and call all others, prompts and resources."""
        from toolscript.gateway.bridge import run_bridge
        from toolscript.gateway.bridge_place import BridgeSettings
        from toolscript.gateway.settings import environment, load_gateway_settings

        given = flags(config=config, data_dir=data_dir, model=model, alone=alone)
        load_gateway_settings(given)
        words = {name: str(value) for name, value in given.items() if value}
        run_bridge(BridgeSettings({**words, "direct": "yes" if direct else ""}, environment()))


def _say_ready(url: str, token: str = "", *, as_json: bool) -> None:
    if token:
        say_json = json.dumps({"url": url, "token": token})
        sys.stdout.write(f"{say_json}\n")
    else:
        show({"url": url, "mcp": f"{url}/mcp"}, f"gateway at {url}, MCP at {url}/mcp", as_json=as_json)
    # The process keeps running: a reader of a file or a pipe would not see the line until it ends.
    sys.stdout.flush()


def _as_seen(health: "GatewayHealth") -> "GatewayHealth":
    """Return it without what servers said, unless a person reads it."""
    return health if is_watched() else replace(health, servers=tuple(without_words(health.servers)))


def _gateway() -> typer.Typer:
    group = typer.Typer(help="The gateway daemon: HTTP and MCP on this machine.", no_args_is_help=True)

    @group.command()
    def start(
        port: Port = None,
        background: Annotated[
            bool, typer.Option("--background", "-b", help="Run as a daemon; return once it serves.")
        ] = False,
        config: ConfigFile = None,
        data_dir: DataDir = None,
        model: Model = None,
        on_demand: Annotated[
            bool, typer.Option("--on-demand", hidden=True, help="For a client that found none running.")
        ] = False,
        private: Annotated[
            bool, typer.Option("--private", hidden=True, help="For the process that starts it, until it ends.")
        ] = False,
        as_json: AsJson = False,
    ) -> None:
        """Start the gateway, on loopback only. Ctrl-C or `toolscript gateway stop` stops it."""

        from toolscript.gateway import daemon

        options = flags(config=config, data_dir=data_dir, model=model, port=port)
        kind = {"background": background, "on_demand": on_demand, "private": private}
        daemon.start(flags=options, on_ready=partial(_say_ready, as_json=as_json), **kind)

    @group.command()
    def status(config: ConfigFile = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
        """Show the state of the gateway, and of the servers of these config files. Exit code 1: none runs."""
        from toolscript.gateway import daemon
        from toolscript.gateway.savings import DAYS, savings

        running, health = daemon.status(flags=flags(config=config, data_dir=data_dir))
        if health is None:
            show({"running": False}, "no gateway is running for this data folder", as_json=as_json)
            raise typer.Exit(NOT_RUNNING)
        health = _as_seen(health)
        data = {"running": True, "url": running and running.url, **health_to_json(health)}
        lines = [_status_line(health)]
        if not health.activity:
            done = savings(flags=flags(config=config, data_dir=data_dir))
            data["usage"] = {"days": DAYS, **vars(done.usage), "saved_tokens": done.saved_tokens}
            lines.append(str(done))
        show(data, "\n".join(lines), as_json=as_json)
        if not as_json:
            show_servers(health.servers)
        if health.activity:
            say(f"warning: {health.activity}; searches and calls are not logged")

    @group.command()
    def stop(config: ConfigFile = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
        """Stop the gateway, and the servers it started. The next command starts it again."""
        from toolscript.gateway import daemon

        stopped = daemon.stop(flags=flags(config=config, data_dir=data_dir))
        show({"stopped": stopped.pid}, f"stopped the gateway at {stopped.url}", as_json=as_json)

    _env(group)
    _clients(group)
    add_autostart(group)
    return group


def _status_line(health: "GatewayHealth") -> str:
    """Return one sentence. Items beyond those of ready servers come from the cache."""
    names = {
        status: [server.name for server in health.servers if server.status is status] for status in ServerStatus
    }
    ready = [server for server in health.servers if server.status is ServerStatus.READY]
    asleep = [server for server in health.servers if server.status is ServerStatus.ASLEEP]
    listed = sum(server.tools + server.prompts + server.resources for server in [*ready, *asleep])
    cached = health.items - listed
    items = f"{health.items} items" + (f" ({cached} cached)" if cached > 0 else "")
    state = "running" if health.ready else "starting"
    retrieval = f"hybrid search ({health.model})" if health.semantic else "keyword search only"
    why = f": {health.note}" if health.note and (health.is_fallback or not health.semantic) else ""
    others = [
        f", {len(names[status])} {status} ({_first_names(names[status])})"
        for status in (
            ServerStatus.STARTING,
            ServerStatus.ASLEEP,
            ServerStatus.FAILED,
            ServerStatus.SIGN_IN_NEEDED,
        )
        if names[status]
    ]
    servers = f"{len(ready)} of {len(health.servers)} servers ready{''.join(others)}"
    return f"{state}: {items}; {servers}; {retrieval}{why}"


def _first_names(names: Sequence[str]) -> str:
    return ", ".join([*names[:MAX_NAMED], *(["..."] if len(names) > MAX_NAMED else [])])


def _env(group: typer.Typer) -> None:
    @group.command()
    def env(
        client: Annotated[str, typer.Option(help="Name of the client that the token is for.")] = "shell",
        config: ConfigFile = None,
        data_dir: DataDir = None,
        as_json: AsJson = False,
    ) -> None:
        """Print the address of the running gateway and a client's token, for a shell. Exit code 1: none runs.

        The token finds, lists and calls tools. In a folder whose config file names servers, the address is that of
        the folder's servers.
        """
        from toolscript.gateway.client_configs import client_tokens
        from toolscript.gateway.daemon import find_workspace

        running = find_workspace(flags=flags(config=config, data_dir=data_dir))
        if running is None:
            say("no gateway is running for this data folder\nhint: `toolscript gateway start` starts one")
            raise typer.Exit(NOT_RUNNING)
        token = client_tokens(flags=flags(data_dir=data_dir)).of(client)
        lines = [
            f"export TOOLSCRIPT_GATEWAY_URL={running.url}",
            f"export TOOLSCRIPT_GATEWAY_TOKEN={shlex.quote(token)}",
        ]
        show({"url": running.url, "token": token}, "\n".join(lines), as_json=as_json)


def _clients(group: typer.Typer) -> None:
    @group.command()
    def clients(data_dir: DataDir = None, as_json: AsJson = False) -> None:
        """List the clients that have a token of their own, never a token. Exit code 1: none has."""
        from toolscript.gateway.client_configs import client_tokens

        found = [token.to_json() for token in client_tokens(flags=flags(data_dir=data_dir)).all()]
        rows = [[printable(str(token["client"])), str(token["created_at"])] for token in found]
        text = table(["Client", "Since"], rows, colour=colour_wanted()) if rows else "no client has a token"
        show({"clients": found}, text, as_json=as_json)
        if not found:
            raise typer.Exit(NOTHING_FOUND)

    @group.command()
    def revoke(
        client: Annotated[str, typer.Argument(help="Name of the client in `gateway clients`.")],
        data_dir: DataDir = None,
        as_json: AsJson = False,
    ) -> None:
        """Make a client's token void, at once. Its calls and searches stay in the log."""
        from toolscript.gateway.client_configs import client_tokens

        if not client_tokens(flags=flags(data_dir=data_dir)).revoke(client):
            raise NotFound(
                f"no client called {printable(client)} has a token", hint="`toolscript gateway clients` lists them"
            )
        show({"revoked": client}, f"revoked the token of {printable(client)}", as_json=as_json)
