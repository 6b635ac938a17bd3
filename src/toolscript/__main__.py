"""argv -> the command line."""

from toolscript.surfaces.cli import ServiceCommands, build_cli
from toolscript.surfaces.cli.app import run


def _service() -> ServiceCommands:
    # Imported when a command needs it: drivers and models take seconds to load, `--help` must not.
    from toolscript import service

    return service


app = build_cli(_service)


def main() -> None:
    run(app)


if __name__ == "__main__":
    main()
