"""gateway start|status|stop, mcp: a gateway that stays."""

import shlex
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from toolscript.cli.gateway_options import AsJson, ConfigFile, DataDir, Model, Port, flags
from toolscript.cli.gateway_tables import show_servers
from toolscript.cli.gateway_trust import offer_trust
from toolscript.cli.output import say, show
from toolscript.model.gateway_json import health_to_json
from toolscript.model.servers import ServerStatus

if TYPE_CHECKING:
    from toolscript.model.gateway import GatewayHealth

NOT_RUNNING = 1
MOST_NAMED = 5


def serve_commands(app: typer.Typer) -> None:
    app.add_typer(_gateway(), name="gateway")

    @app.command()
    def mcp(config: ConfigFile = None, data_dir: DataDir = None, model: Model = None) -> None:
        """Serve search_tools, describe_tool and call_tool to one MCP client over stdin and stdout."""
        from toolscript.gateway.serving import serve_stdio

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

        from toolscript.gateway import lifecycle

        given = flags(config=config, data_dir=data_dir, model=model, port=port)
        offer_trust(given)
        lifecycle.start(flags=given, on_ready=on_ready, background=background)

    @group.command()
    def status(config: ConfigFile = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
        """Show whether a gateway runs for these config files, and how it is doing. Exit code 1: none runs."""
        from toolscript.gateway import lifecycle

        running, health = lifecycle.status(flags=flags(config=config, data_dir=data_dir))
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
        from toolscript.gateway import lifecycle

        stopped = lifecycle.stop(flags=flags(config=config, data_dir=data_dir))
        show({"stopped": stopped.pid}, f"stopped the gateway at {stopped.url}", as_json=as_json)

    _env(group)
    return group


def _status_line(health: "GatewayHealth") -> str:
    ready = sum(one.status is ServerStatus.READY for one in health.servers)
    down = [one.name for one in health.servers if one.status is ServerStatus.FAILED]
    state = "running" if health.ready else "starting"
    by = f"by meaning and words ({health.model})" if health.semantic else "by words alone"
    why = f": {health.note}" if health.note and not health.semantic else ""
    lost = f", down: {', '.join(down[:MOST_NAMED])}{', ...' if len(down) > MOST_NAMED else ''}" if down else ""
    of = f"{ready} of {len(health.servers)} servers"
    return f"{state}: {health.items} items of {of}{lost}; searched {by}{why}"


def _env(group: typer.Typer) -> None:
    @group.command()
    def env(config: ConfigFile = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
        """Print address and token of the running gateway, for a shell to read. Exit code 1: none runs."""
        from toolscript.gateway.lifecycle import find

        running = find(flags=flags(config=config, data_dir=data_dir))
        if running is None:
            say("no gateway is running for these config files\nhint: `toolscript gateway start` starts one")
            raise typer.Exit(NOT_RUNNING)
        lines = [
            f"export TOOLSCRIPT_GATEWAY_URL={running.url}",
            f"export TOOLSCRIPT_GATEWAY_TOKEN={shlex.quote(running.token)}",
        ]
        show({"url": running.url, "token": running.token}, "\n".join(lines), as_json=as_json)
