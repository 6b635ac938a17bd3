"""The config files of this place, and what in them can be used, as every command finds it."""

import logging
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from toolscript.adapters.config_files.problems import Severity
from toolscript.adapters.config_files.read import FILE_NAME, Config, config_paths, read_config
from toolscript.adapters.config_files.trust import Standing, TrustStore
from toolscript.model.servers import ServerState, ServerStatus, Transport

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ConfigPlace:
    """`named`: a file that is used instead of the usual ones. `by_person`: by whoever typed the command."""

    named: str = ""
    by_person: bool = True

    @property
    def store(self) -> TrustStore:
        return TrustStore(Path.home())

    def paths(self) -> list[Path]:
        """The user's and the project's, or the one that is named."""
        return config_paths(Path.home(), Path.cwd(), Path(self.named).expanduser() if self.named else None)

    def watched(self) -> list[Path]:
        """A file that is trusted later is one that changed."""
        paths = self.paths()
        return [*paths, *(self.store.file_of(path) for path in paths if not self.is_own(path))]

    def is_own(self, path: Path) -> bool:
        """A person's own file, and one they name themselves, need no trust; what comes with a project does."""
        if self.named and self.by_person:
            return True
        try:
            own = path.parent.samefile(Path.home()) and path.name == FILE_NAME
            # Where the system knows no owners it has no such right either.
            return own and not (hasattr(os, "getuid") and path.stat().st_mode & stat.S_IWOTH)
        except OSError:
            return path == Path.home().absolute() / FILE_NAME

    def trust(self, path: Path, text: str) -> Standing:
        return Standing.TRUSTED if self.is_own(path) else self.store.standing(path, text)

    def read(self, environment: Mapping[str, str]) -> Config:
        return read_config(self.paths(), environment, self.trust)

    def read_and_warn(self, environment: Mapping[str, str]) -> Config:
        """What is wrong with one entry harms no other; `left_out` tells of it."""
        config = self.read(environment)
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
