"""The command line."""

from toolscript.surfaces.cli.app import ServiceCommands, build_cli
from toolscript.surfaces.cli.gateway_commands import GatewayCommands

__all__ = ["GatewayCommands", "ServiceCommands", "build_cli"]
