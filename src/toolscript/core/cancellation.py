"""Work that was cancelled ends, even where a driver has lost the cancellation on its way up."""

import asyncio


def raise_if_cancelled() -> None:
    """For loops: whoever was told to stop while a driver was at work may never have heard of it."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
