"""The command line."""

from toolscript.cli.app import build_cli

__all__ = ["build_cli"]
