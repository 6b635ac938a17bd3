"""`python -m tests.e2e.gateway.older_gateway VERSION ARGUMENTS`: the command line of another version."""

import sys

from toolscript.core import version

version.__version__ = sys.argv.pop(1)

from toolscript.__main__ import main  # noqa: E402 - it must see the other version

if __name__ == "__main__":
    main()
