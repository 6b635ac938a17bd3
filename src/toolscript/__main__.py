"""Entry point of the command line."""

import sys

from typer import Typer

from toolscript.cli.app import build_cli, run
from toolscript.cli.output import allow_colour, show_warnings
from toolscript.gateway.settings import colour_is_unwanted, keep_libraries_quiet


def main() -> None:
    start(build_cli(only=next(iter(sys.argv[1:]), "")))


def start(commands: Typer) -> None:
    keep_libraries_quiet()
    allow_colour(not colour_is_unwanted())
    show_warnings()
    run(commands)


if __name__ == "__main__":
    main()
