"""A worker that kills itself, as a power cut would, when it reaches a step for the n-th time."""

import asyncio
import os
import signal
import sys

from benchmarks.other_constants import change
from toolscript.core.settings.service import Settings
from toolscript.core.values import silent
from toolscript.server.indexing import open_index_writer
from toolscript.tools.indexing.indexer import Step

# Small batches and short leases: many moments to die in, and no long wait for the survivor.
FRAGILE = {"toolscript.server.indexing.BATCH": 8, "toolscript.server.indexing.LEASE_SECONDS": 0.5}


async def main(step: Step, times: int) -> None:
    seen = 0

    def at_step(reached: Step) -> None:
        nonlocal seen
        seen += reached is step
        if seen == times:
            os.kill(os.getpid(), signal.SIGKILL)

    async with open_index_writer(Settings()) as writer:
        await writer.worker(silent, at_step).drain()


if __name__ == "__main__":
    for name, value in FRAGILE.items():
        change(name, value)
    asyncio.run(main(Step(sys.argv[1]), int(sys.argv[2])))
