"""The activity log of a data folder: opened for a gateway, and read, cleared and examined for commands."""

import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from toolscript.core.errors import SetupError
from toolscript.gateway.activity import ActivityFilter, ActivityLog, NoActivity, Record, Usage
from toolscript.gateway.settings import (
    ACTIVITY_ARGUMENTS,
    NO_ACTIVITY,
    GatewaySettings,
    load_gateway_settings,
)
from toolscript.gateway.store.activity_file import (
    FILE,
    FileState,
    Limits,
    check,
    clear,
    read_after,
    read_page,
    read_usage,
    reading,
    state_of,
)


@asynccontextmanager
async def open_activity(settings: GatewaySettings) -> AsyncIterator[ActivityLog]:
    """Open the log that the settings ask for; its file is opened by the first entry."""
    if settings.gateway_activity == NO_ACTIVITY:
        yield NoActivity()
        return
    from toolscript.gateway.store.activity_log import SqliteActivity

    log = SqliteActivity(
        activity_file(settings), Limits(settings.gateway_activity_rows, settings.gateway_activity_megabytes)
    )
    try:
        yield log
    finally:
        await log.close()


def keeps_arguments(settings: GatewaySettings) -> bool:
    return settings.gateway_activity == ACTIVITY_ARGUMENTS


def activity_file(settings: GatewaySettings) -> Path:
    return settings.data_folder / FILE


class History:
    """The log as commands read it, whether a gateway runs or not."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def page(self, where: ActivityFilter, before: int | None, limit: int) -> Sequence[Record]:
        """Return the records with an id below `before`, the newest first."""
        with self._reading() as connection:
            return read_page(connection, where, before, limit) if connection is not None else ()

    def after(self, where: ActivityFilter, last: int, running: Sequence[int], limit: int) -> Sequence[Record]:
        """Return records with an id above `last`, and those of `running`, the oldest first."""
        with self._reading() as connection:
            return read_after(connection, where, last, running, limit) if connection is not None else ()

    def usage(self, since: float) -> Usage:
        """Return what was done after that time."""
        with self._reading() as connection:
            return read_usage(connection, since) if connection is not None else Usage()

    def state(self) -> FileState | None:
        """Return how large it is, None without a file."""
        with self._reading() as connection:
            return state_of(connection) if connection is not None else None

    def check(self) -> None:
        """Raise if it cannot be written. A file that is not there is not made."""
        with self._explained():
            if self.path.exists():
                check(self.path)

    def clear(self) -> int:
        """Delete all but the calls that run; return how many entries were deleted."""
        with self._explained():
            return clear(self.path)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection | None]:
        with self._explained(), reading(self.path) as connection:
            yield connection

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise SetupError(f"{self.path} cannot be used: {error}", hint="try again in a moment") from error
        except (sqlite3.Error, OSError) as error:
            raise SetupError(
                f"{self.path} cannot be used: {error}",
                hint=f"`toolscript activity --clear` begins it anew; or remove {self.path} yourself",
            ) from error


def history(flags: Mapping[str, object]) -> History:
    return History(activity_file(load_gateway_settings(flags)))
