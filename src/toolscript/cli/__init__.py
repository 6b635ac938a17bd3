"""The command line."""

from toolscript.cli.app import ServiceCommands, build_cli
from toolscript.cli.gateway_commands import GatewayCommands

__all__ = ["GatewayCommands", "ServiceCommands", "build_cli"]
