"""Config files: ours, and those of other clients. Reading ours is all that a command line needs to start with."""

from typing import TYPE_CHECKING

from toolscript.adapters.config_files.problems import Problem, Severity
from toolscript.adapters.config_files.read import Config, config_paths, read_config

if TYPE_CHECKING:
    from toolscript.adapters.config_files.watch import config_changes

__all__ = ["Config", "Problem", "Severity", "config_changes", "config_paths", "read_config"]


def __getattr__(name: str) -> object:
    # Watching loads asyncio, which takes longer to load than all the rest.
    if name == "config_changes":
        from toolscript.adapters.config_files import watch

        return watch.config_changes
    raise AttributeError(name)
