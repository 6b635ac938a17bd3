"""The commands and their help page. Each command parses its options, calls a service and prints the result."""

import gc
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from toolscript.cli.options import AsJson, ConfigFile, DataDir, Model, flags
from toolscript.cli.output import is_watched, json_text, progress, say, show, table
from toolscript.core.errors import ERROR_TABLE, InvalidRequest, SetupError, ToolscriptError, envelope_of
from toolscript.core.version import __version__

if TYPE_CHECKING:
    from toolscript.core.values import IndexStatus
    from toolscript.tools.indexing.doctor import DoctorReport
    from toolscript.tools.indexing.worker import WorkReport


YOURS = (
    "setup",
    "search",
    "list-servers",
    "list-tools",
    "get-types",
    "call",
    "curation",
    "rules",
    "trust",
    "review",
    "login",
    "logout",
    "mcp",
    "gateway",
    "activity",
    "secrets",
    "config",
    "doctor",
)
YOURS_PANEL = "Your tools"
SERVICE_PANEL = "The service (pip install 'toolscript[service]')"
MAX_SENTENCE = 200
# Of the engines, which only the service has.
SERVICE_PREFIXES = ("TOOLSCRIPT_POSTGRES_", "TOOLSCRIPT_QDRANT_", "TOOLSCRIPT_MONGO_")
# Hints of the service for HTTP clients, and what they mean on the command line.
COMMAND_HINTS = {
    "send Authorization: Bearer <token>": "give a token with --token or TOOLSCRIPT_TOKEN; "
    "`toolscript tenants token` signs one",
    "`timeout` gives it longer": "--timeout gives it longer",
}


class TwoPanels(TyperGroup):
    """Help with two panels of commands, each command with its complete first sentence."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        sentences = {
            name: command.get_short_help_str(MAX_SENTENCE)
            for name, command in commands.items()
            if command and not command.hidden
        }
        service = [name for name in sentences if name not in YOURS]
        panels = {YOURS_PANEL: YOURS, SERVICE_PANEL: service}
        for heading, names in panels.items():
            with formatter.section(heading):
                formatter.write_dl([(name, sentences[name]) for name in names if name in sentences])


def build_cli(only: str = "") -> typer.Typer:
    """Build the commands; if `only` is the name of one, it alone: all others take more time than most commands.

    A command imports its code when it runs, so that help and completion stay fast.
    """
    app = typer.Typer(
        name="toolscript",
        cls=TwoPanels,
        help="Search for AI agents: the right tool for a request in plain words.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_version_option)
    is_known = any(only in names for names in COMMANDS)
    for names, add in COMMANDS.items():
        if only in names or not is_known:
            add(app)
    return app


def _add_finding(app: typer.Typer) -> None:
    from toolscript.cli.search import find_commands

    find_commands(app)


def _add_gateway(app: typer.Typer) -> None:
    from toolscript.cli.gateway import serve_commands

    serve_commands(app)


def _add_setup(app: typer.Typer) -> None:
    from toolscript.cli.setup import add_setup

    add_setup(app)


def _add_activity(app: typer.Typer) -> None:
    from toolscript.cli.activity import activity_commands

    activity_commands(app)


def _add_trust(app: typer.Typer) -> None:
    from toolscript.cli.gateway import trust_command

    trust_command(app)


def _add_review(app: typer.Typer) -> None:
    from toolscript.cli.review import review_commands

    app.add_typer(review_commands(), name="review")


def _add_signin(app: typer.Typer) -> None:
    from toolscript.cli.signin import add_signin

    add_signin(app)


def _add_secrets(app: typer.Typer) -> None:
    from toolscript.cli.secrets import secrets_commands

    app.add_typer(secrets_commands(), name="secrets")


def _add_config(app: typer.Typer) -> None:
    from toolscript.cli.gateway import config_commands

    app.add_typer(config_commands(), name="config")


def _add_curation(app: typer.Typer) -> None:
    from toolscript.cli.curation import curation_commands

    app.add_typer(curation_commands(), name="curation")


def _add_rules(app: typer.Typer) -> None:
    from toolscript.cli.rules import rules_commands

    app.add_typer(rules_commands(), name="rules")


def _add_index(app: typer.Typer) -> None:
    from toolscript.cli.indexes import add_migrate, add_reindex
    from toolscript.cli.ingest import add_ingest
    from toolscript.cli.sync import add_sync

    add_migrate(app)
    add_sync(app)
    add_ingest(app)
    add_reindex(app)


def _add_audit(app: typer.Typer) -> None:
    from toolscript.cli.audit import audit_commands

    app.add_typer(audit_commands(), name="audit")


def _add_catalog(app: typer.Typer) -> None:
    from toolscript.cli.library import library_commands
    from toolscript.cli.skills import skill_commands
    from toolscript.cli.sources import change_commands, source_commands
    from toolscript.cli.tools import tool_commands

    app.add_typer(source_commands(), name="sources")
    app.add_typer(library_commands(), name="library")
    app.add_typer(change_commands(), name="changes")
    app.add_typer(skill_commands(), name="skills")
    app.add_typer(tool_commands(), name="tools")


def _add_backup(app: typer.Typer) -> None:
    from toolscript.cli.backup import backup_commands

    backup_commands(app)


def _add_documents(app: typer.Typer) -> None:
    from toolscript.cli.documents import document_commands
    from toolscript.cli.tenants import tenant_commands

    app.add_typer(document_commands(), name="documents")
    app.add_typer(tenant_commands(), name="tenants")


def _add_eval(app: typer.Typer) -> None:
    @app.command(hidden=True, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
    def eval(context: typer.Context) -> None:  # noqa: A001
        """Name the program that measures search quality."""
        arguments = shlex.join(["toolscript-eval", *context.args])
        raise InvalidRequest(
            "search quality is measured by a program of its own, toolscript-eval",
            hint=f"pip install toolscript-eval, then run `{arguments}`",
        )


def run(app: typer.Typer) -> None:
    """Run the command line; an error of ours becomes a message, a hint and an exit code."""
    try:
        app()
    except ToolscriptError as error:
        _exit_with(error)
    except ModuleNotFoundError as error:
        if (error.name or "toolscript").partition(".")[0] == "toolscript":
            raise
        _exit_with(
            SetupError(
                f"this command needs the service, which is not installed (no module {error.name})",
                hint="pip install 'toolscript[service]'",
            )
        )


def _exit_with(error: ToolscriptError) -> NoReturn:
    error.hint = COMMAND_HINTS.get(error.hint, error.hint)
    if "--json" in sys.argv:
        say(json_text(envelope_of(error)))
    else:
        say(f"error: {error.message}" + (f"\nhint: {error.hint}" if error.hint else ""))
    raise SystemExit(ERROR_TABLE[type(error)].exit_code) from None


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(__version__)
        raise typer.Exit


def _version_option(
    _: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None: ...


def _add_worker(app: typer.Typer) -> None:
    @app.command()
    def worker(
        drain: Annotated[bool, typer.Option(help="Exit when no work is left.")] = False,
        as_json: AsJson = False,
    ) -> None:
        """Embed and index changed items of the catalog. Any number of workers can run at once."""
        from toolscript.server import indexing

        if not drain:
            indexing.work()
            return
        with progress() as on_progress:
            report = indexing.drain(on_progress)
        text = f"{report.indexed:,} items indexed, {report.left:,} left, {report.failing:,} of them failing"
        show(asdict(report), text + _spending(report), as_json=as_json)
        if report.left:
            raise typer.Exit(2)


def _add_serve(app: typer.Typer) -> None:
    @app.command()
    def serve(
        host: Annotated[str | None, typer.Option(help="Address to listen on (default: TOOLSCRIPT_HOST).")] = None,
        port: Annotated[int | None, typer.Option(help="Port to listen on (default: TOOLSCRIPT_PORT).")] = None,
        socket: Annotated[
            str | None,
            typer.Option(
                metavar="PATH",
                help="Additional Unix socket to listen on; every process that can open it is an administrator "
                "(default: TOOLSCRIPT_SOCKET).",
            ),
        ] = None,
        demo: Annotated[
            bool,
            typer.Option(
                "--demo",
                help="Serve a small catalog, documents and a library from memory, without engine, model or "
                "network, on this machine only. Prints examples.",
            ),
        ] = False,
    ) -> None:
        """Serve searches over HTTP."""
        if demo and socket:
            raise InvalidRequest("--demo listens on a port only", hint="leave --socket out")
        if demo:
            from toolscript.server.demo import serve_demo

            serve_demo(host=host, port=port, tell=typer.echo)
            return
        # What a start makes stays: `raise_gc_thresholds` turns collection on when the service answers.
        gc.disable()
        try:
            from toolscript.server.serve import serve as serve_forever

            serve_forever(host=host, port=port, socket_file=socket)
        finally:
            gc.enable()


def _add_doctor(app: typer.Typer) -> None:
    @app.command()
    def doctor(
        index: Annotated[
            bool,
            typer.Option(
                "--index", help="Compare the service's catalog and index, and list the indexes with their models."
            ),
        ] = False,
        repair: Annotated[bool, typer.Option(help="Mark differing items for the worker to index again.")] = False,
        config: ConfigFile = None,
        data_dir: DataDir = None,
        model: Model = None,
        as_json: AsJson = False,
    ) -> None:
        """Check config files, servers, model and caches; each finding has a fix. Exit code 2: findings exist."""
        if index or repair:
            healthy = _examine_service(repair=repair, as_json=as_json)
        else:
            options = flags(config=config, data_dir=data_dir, model=model)
            healthy = _examine_gateway(options, as_json=as_json)
        if not healthy:
            raise typer.Exit(2)


def _examine_service(*, repair: bool, as_json: bool) -> bool:
    from toolscript.server.indexing import doctor, list_indexes

    with progress() as on_progress:
        report = doctor(repair=repair, on_progress=on_progress)
    _show_report(report, list_indexes(), as_json=as_json)
    return report.healthy or repair


def _examine_gateway(data: Mapping[str, object], *, as_json: bool) -> bool:
    from toolscript.cli.gateway_tables import show_findings
    from toolscript.core.mcp_client.model import without_server_output
    from toolscript.gateway.doctor import examine

    with progress() as on_progress:
        findings = examine(flags=data, on_progress=on_progress)
    if not is_watched():
        findings = [replace(finding, message=without_server_output(finding.message)) for finding in findings]
    show_findings(findings, as_json=as_json)
    if not as_json and any(finding.code == "NO_SERVERS" for finding in findings) and _has_service_settings():
        say("hint: this checked the gateway; `toolscript doctor --index` checks the service")
    return all(finding.ok for finding in findings)


def _has_service_settings() -> bool:
    from toolscript.gateway.settings import environment

    return any(name.startswith(SERVICE_PREFIXES) for name in environment())


def _spending(report: "WorkReport") -> str:
    if report.language_model is None:
        return ""
    used = report.language_model.usage
    return (
        f"\nlanguage model: {used.calls:,} calls, {used.failed:,} failed, {used.prompt_tokens:,} prompt tokens, "
        f"{used.completion_tokens:,} completion tokens, cost {report.language_model.cost:.4f}"
    )


def _show_report(report: "DoctorReport", indexes: Sequence["IndexStatus"], *, as_json: bool) -> None:
    for item, reason in report.failing:
        say(f"item {item} keeps failing: {reason}")
    text = (
        f"{report.items:,} items, {report.points:,} points: {report.missing:,} missing, {report.stale:,} stale, "
        f"{report.extra:,} extra; {report.pending:,} waiting for a worker; "
        f"{report.skills:,} skills, {report.wrong_skills:,} wrong in the index"
    )
    columns = ("product", "collection", "state", "model", "points", "shards", "building")
    rows = [[str(value) for value in asdict(status).values()] for status in indexes]
    data = {**asdict(report), "healthy": report.healthy, "indexes": [asdict(status) for status in indexes]}
    show(data, f"{text}\n\n{table(columns, rows, colour=False)}", as_json=as_json)
    if not report.healthy:
        next_step = "`toolscript worker --drain`" if report.repaired else "`toolscript doctor --repair`"
        say(f"hint: run {next_step}")


# What adds commands, by the names of these.
COMMANDS: Mapping[tuple[str, ...], Callable[[typer.Typer], None]] = {
    ("setup",): _add_setup,
    ("search", "list-servers", "list-tools", "get-types", "call"): _add_finding,
    ("curation",): _add_curation,
    ("rules",): _add_rules,
    ("mcp", "gateway"): _add_gateway,
    ("activity",): _add_activity,
    ("trust",): _add_trust,
    ("review",): _add_review,
    ("login", "logout"): _add_signin,
    ("secrets",): _add_secrets,
    ("config",): _add_config,
    ("doctor",): _add_doctor,
    ("migrate", "sync", "ingest", "reindex"): _add_index,
    ("worker",): _add_worker,
    ("serve",): _add_serve,
    ("sources", "library", "changes", "skills", "tools"): _add_catalog,
    ("audit",): _add_audit,
    ("documents", "tenants"): _add_documents,
    ("backup", "restore"): _add_backup,
    ("eval",): _add_eval,
}
