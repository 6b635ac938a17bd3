"""The activity log of a data folder: opened for a gateway, and for commands."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from toolscript.gateway.activity import ActivityLog, NoActivity
from toolscript.gateway.settings import (
    ACTIVITY_ARGUMENTS,
    NO_ACTIVITY,
    GatewaySettings,
    load_gateway_settings,
)
from toolscript.gateway.store.activity_file import FILE, ActivityFile, Limits


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


def history(flags: Mapping[str, object]) -> ActivityFile:
    """Return the log as commands read it, whether a gateway runs or not."""
    return ActivityFile(activity_file(load_gateway_settings(flags)))
