"""The command line."""

from toolscript.surfaces.cli.app import ServiceCommands, build_cli

__all__ = ["ServiceCommands", "build_cli"]
