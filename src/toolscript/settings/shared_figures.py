"""Where the processes of one server keep the figures that any of them shows."""

import os


def share_figures_in(folder: str) -> None:
    """The library that counts looks here when it is first loaded: to be said before that."""
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
