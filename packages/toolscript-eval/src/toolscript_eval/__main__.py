"""Entry point of `toolscript-eval`."""

from toolscript.__main__ import start
from toolscript_eval.cli import evaluate_commands


def main() -> None:
    start(evaluate_commands())


if __name__ == "__main__":
    main()
