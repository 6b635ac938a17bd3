"""A process that logs: `activity_writer FILE BEGUN DONE` completes so many calls, begins others, and waits."""

import asyncio
import sys
from pathlib import Path

from toolscript.gateway.activity import Action, Ending, Entry, Outcome
from toolscript.gateway.store.activity_log import SqliteActivity


async def main(path: Path, begun: int, done: int) -> None:
    log = SqliteActivity(path)
    for number in range(done):
        ticket = log.begin(Entry(Action.CALL, 1.0, "claude", "files", f"done_{number}"))
        await log.written()
        log.finish(ticket, Ending(Outcome.OK, 1.0))
    for number in range(begun):
        log.begin(Entry(Action.CALL, 1.0, "cursor", "mail", f"begun_{number}"))
    await log.written()
    sys.stdout.write("written\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    await log.close()


asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
