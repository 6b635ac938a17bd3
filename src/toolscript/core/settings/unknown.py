"""Warns of variables that look like settings and are none: a misspelt name silently means the default."""

import difflib
import logging
import os
from collections.abc import Collection

logger = logging.getLogger(__name__)

PREFIX = "TOOLSCRIPT_"
# Read by `scripts/engines` and by the tests, which share their environment with the program.
_OTHERS = {"TOOLSCRIPT_ENGINES_DIR", "TOOLSCRIPT_QDRANT_NODES"}
_OF_TESTS = "TOOLSCRIPT_TEST_"

_warned: set[str] = set()


def warn_of_unknown(settings: Collection[str], *, prefixes: tuple[str, ...] = (PREFIX,)) -> None:
    """`settings` are the fields that exist. A variable is named once in a process; its value never."""
    known = {PREFIX + name.upper() for name in settings}
    for variable in sorted(os.environ.keys() - known - _OTHERS - _warned):
        if variable.startswith(prefixes) and not variable.startswith(_OF_TESTS):
            _warned.add(variable)
            logger.warning("%s is not a setting and has no effect; %s", variable, _advice(variable, known))


def _advice(variable: str, known: Collection[str]) -> str:
    similar = difflib.get_close_matches(variable, known, n=1, cutoff=0.8)
    return f"did you mean {similar[0]}?" if similar else "docs/settings.md lists the settings"
