"""The variables of this process, for what has to start without the classes of settings."""

import os
from collections.abc import Mapping


def environment() -> Mapping[str, str]:
    """Return the variables of this process, as they are now."""
    return dict(os.environ)
