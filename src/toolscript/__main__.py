"""Entry point of the command line."""

import sys

# That of `typing`, which takes longer to import than this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typer import Typer


def main() -> None:
    if sys.argv[1:2] == ["mcp"] and _served():
        return
    from toolscript.cli.app import build_cli

    start(build_cli(only=next(iter(sys.argv[1:]), "")))


def start(commands: "Typer") -> None:
    from toolscript.cli.app import run
    from toolscript.cli.output import allow_colour, show_warnings
    from toolscript.gateway.settings import colour_is_unwanted, keep_libraries_quiet

    keep_libraries_quiet()
    allow_colour(not colour_is_unwanted())
    show_warnings()
    run(commands)


def _served() -> bool:
    """Serve a client of `toolscript mcp`, without the command line, which loads for longer than clients wait.

    Where an option or a variable is wrong, the command line says what.
    """
    from toolscript.core.settings.environment import environment
    from toolscript.gateway.bridge import run_bridge
    from toolscript.gateway.bridge_place import BridgeSettings, parse_options

    given = parse_options(sys.argv[2:])
    if given is None:
        return False
    try:
        settings = BridgeSettings(given, environment())
    except ValueError:
        return False
    run_bridge(settings)
    return True


if __name__ == "__main__":
    main()
