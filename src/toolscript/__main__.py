"""argv -> the command line."""

from toolscript.cli import GatewayCommands, ServiceCommands, build_cli
from toolscript.cli.app import run
from toolscript.cli.output import allow_colour, show_warnings
from toolscript.settings import colour_is_unwanted, keep_libraries_quiet


def _service() -> ServiceCommands:
    # Imported when a command needs it: drivers and models take seconds to load, `--help` must not.
    from toolscript import service

    return service


def _gateway() -> GatewayCommands:
    from toolscript import gateway

    return gateway


app = build_cli(_service, _gateway)


def main() -> None:
    keep_libraries_quiet()
    allow_colour(not colour_is_unwanted())
    show_warnings()
    run(app)


if __name__ == "__main__":
    main()
