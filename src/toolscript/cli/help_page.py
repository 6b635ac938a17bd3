"""The first page of `--help`: what everybody has, and what the service adds."""

from typing import Any

from typer.core import TyperGroup

OWN = (
    "search",
    "list-servers",
    "list-tools",
    "get-types",
    "call",
    "trust",
    "mcp",
    "gateway",
    "config",
    "doctor",
    "eval",
)
OWN_HEADING = "Your own tools"
SERVICE_HEADING = "The service (pip install 'toolscript[service]')"
WHOLE = 200


class TwoProducts(TyperGroup):
    """Commands under two headings, each with the whole of its first sentence."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        named = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        shown = {name: one.get_short_help_str(WHOLE) for name, one in named.items() if one and not one.hidden}
        service = [name for name in shown if name not in OWN]
        for heading, names in ((OWN_HEADING, OWN), (SERVICE_HEADING, service)):
            with formatter.section(heading):
                formatter.write_dl([(name, shown[name]) for name in names if name in shown])
