"""argv -> the command line."""

from toolscript.cli import build_cli
from toolscript.cli.app import run
from toolscript.cli.output import allow_colour, show_warnings
from toolscript.settings.terminal import colour_is_unwanted, keep_libraries_quiet

app = build_cli()


def main() -> None:
    keep_libraries_quiet()
    allow_colour(not colour_is_unwanted())
    show_warnings()
    run(app)


if __name__ == "__main__":
    main()
