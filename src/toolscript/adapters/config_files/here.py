"""The config files of this place, and what in them can be used, as every command finds it."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from toolscript.adapters.config_files.problems import Severity
from toolscript.adapters.config_files.read import Config, config_paths, read_config
from toolscript.model.servers import ServerState, ServerStatus, Transport

logger = logging.getLogger(__name__)


def files_here(explicit: str = "") -> list[Path]:
    """The user's and the project's, or the one that is named."""
    return config_paths(Path.home(), Path.cwd(), Path(explicit).expanduser() if explicit else None)


def read_and_warn(paths: Sequence[Path], environment: Mapping[str, str]) -> Config:
    """What is wrong with one entry harms no other; `left_out` tells of it."""
    config = read_config(paths, environment)
    for problem in config.problems:
        if problem.severity is Severity.WARNING:
            logger.warning(str(problem))
    return config


def left_out(config: Config) -> list[ServerState]:
    """Servers that are in a file and cannot be started as they are written there."""
    problems = [one for one in config.problems if one.severity is Severity.ERROR and one.server]
    return [
        ServerState(one.server, Transport.STDIO, ServerStatus.FAILED, f"{one.message}; {one.fix}")
        for one in problems
    ]
