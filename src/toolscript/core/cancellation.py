"""Cancellation that survives a driver which swallows `CancelledError`."""

import asyncio


def raise_if_cancelled() -> None:
    """Call it in loops: a task cancelled during a driver call may never see the exception."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
