"""Warn of variables that look like settings and are none: a misspelt name would silently mean the default."""

import difflib
import logging
import os
from collections.abc import Collection

logger = logging.getLogger(__name__)

PREFIX = "TOOLSCRIPT_"
# Read by `scripts/engines` and by the tests, which share their environment with the program.
_NOT_SETTINGS = {"TOOLSCRIPT_ENGINES_DIR", "TOOLSCRIPT_QDRANT_NODES"}
_TEST_PREFIX = "TOOLSCRIPT_TEST_"

_warned: set[str] = set()


def warn_of_unknown(settings: Collection[str], *, prefixes: tuple[str, ...] = (PREFIX,)) -> None:
    """Warn once per process of each unknown variable, without its value. `settings` are the existing fields."""
    variables = {PREFIX + name.upper() for name in settings}
    for variable in sorted(os.environ.keys() - variables - _NOT_SETTINGS - _warned):
        if variable.startswith(prefixes) and not variable.startswith(_TEST_PREFIX):
            _warned.add(variable)
            logger.warning("%s is not a setting and has no effect; %s", variable, _advice(variable, variables))


def _advice(variable: str, variables: Collection[str]) -> str:
    similar = difflib.get_close_matches(variable, variables, n=1, cutoff=0.8)
    return f"did you mean {similar[0]}?" if similar else "docs/settings.md lists the settings"
