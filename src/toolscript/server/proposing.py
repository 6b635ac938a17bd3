"""`skills propose` and `skills describe` again and again, by one of all processes of `serve` and `worker`."""

import asyncio
import logging
import sys

from toolscript.core.errors import ToolscriptError
from toolscript.core.postgres.alone import alone
from toolscript.core.settings.service import Settings

logger = logging.getLogger(__name__)


async def propose_every(seconds: float, settings: Settings) -> None:
    """Run both commands each time so many seconds have passed; never if they are 0. Another process takes over
    when the one that does so is gone.
    """
    while seconds:
        await asyncio.sleep(seconds)
        try:
            async with alone(settings.postgres_url.get_secret_value(), "proposals") as is_alone:
                while await is_alone():
                    await _propose()
                    await asyncio.sleep(seconds)
        except ToolscriptError as error:
            logger.warning("skills propose failed", extra={"part": "worker", "reason": error.message})


async def _propose() -> None:
    for command in ("propose", "describe"):
        try:
            code = await run_skills_command(command)
            reason = f"exit code {code}" if code else ""
        except OSError as error:
            reason = str(error)
        if reason:
            logger.warning(f"skills {command} failed", extra={"part": "worker", "reason": reason})


async def run_skills_command(name: str) -> int:
    """Run a command in a process of its own: clustering would hold up the worker. Return its exit code."""
    arguments = ("-m", "toolscript", "skills", name, "--json")
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        return await process.wait()
    except asyncio.CancelledError:
        process.terminate()
        raise
