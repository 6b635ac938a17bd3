"""Many tenants search and write concurrently in one service, each trying to read data of the others.

By hand, on the engines of the environment, in a database and under aliases of its own:

    python -m tests.e2e.tenants.run --tenants 1000 --queries 100000

With `--leak` the service is broken on purpose (see leaky_service.py), and the run must detect it.
"""

import argparse
import asyncio
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tests.conftest import Installation
from tests.e2e.tenants.leaky_service import LEAKS
from tests.e2e.tenants.service import clients, own_installation, served
from tests.e2e.tenants.session import Counts, Session
from tests.e2e.tenants.world import members
from tests.e2e.tenants.writing import Writers, differences
from tests.support.bad_tokens import bad_tokens
from tests.support.token_issuer import Issuer

SHOWN = 12


@dataclass(frozen=True)
class Size:
    tenants: int
    queries: int
    at_once: int = 16
    writers: int = 4
    processes: int = 1
    seed: int = 7


@dataclass(frozen=True)
class Result:
    counts: Counts
    written: Counts
    documents_written: dict[str, int]
    seconds: float
    differences: list[str]

    @property
    def foreign(self) -> int:
        return self.counts.foreign_count + self.written.foreign_count

    @property
    def wrong(self) -> int:
        return self.counts.wrong_count + self.written.wrong_count

    @property
    def nothing_leaked(self) -> bool:
        return not self.foreign and not self.wrong and not self.differences


async def watched(url: str, issuer: Issuer, size: Size) -> Result:
    everybody = members(size.tenants, issuer, size.seed)
    bad = [token for token in bad_tokens(issuer).values() if token.isascii()]
    async with clients(url, size.at_once + size.writers) as client:
        session = Session(client, everybody, bad, size.seed)
        writing = Session(client, everybody, bad, size.seed)
        writers = Writers(writing, everybody, size.seed + 1)
        await writers.fill()
        _say(f"{size.tenants} tenants have {writers.done['documents put']} documents")
        writers.done.clear()
        began = time.monotonic()
        writes = asyncio.create_task(writers.write_until_stopped(size.writers))
        reports = asyncio.create_task(_report(session, size.queries, began))
        await session.ask_until(size.queries, size.at_once)
        seconds = time.monotonic() - began
        writers.stop()
        reports.cancel()
        await writes
        apart = await differences(writing, writers, everybody)
    return Result(session.counts, writing.counts, dict(writers.done), seconds, apart)


async def _report(session: Session, total: int, began: float) -> None:
    while True:
        await asyncio.sleep(30)
        done = session.counts.total
        rate = done / (time.monotonic() - began)
        _say(f"{done} of {total} queries, {rate:.0f} a second, {session.counts.foreign_count} foreign hits")


def run(installation: Installation, size: Size, leak: str = "") -> Result:
    with served(installation, leak=leak, TOOLSCRIPT_PROCESSES=str(size.processes)) as (service, issuer):
        return asyncio.run(watched(service.url, issuer, size))


def report(result: Result) -> str:
    counts = result.counts
    rows = [
        f"{kind:28} {count:7} {counts.hits_by_kind[kind]:8} {counts.wrong_by_kind[kind]:6}"
        for kind, count in sorted(counts.asked.items())
    ]
    rate = counts.total / result.seconds
    return "\n".join(
        [
            f"{'kind':28} {'queries':>7} {'hits':>8} {'errors':>6}",
            *rows,
            f"{counts.total} queries in {result.seconds:.0f} s, {rate:.0f} a second",
            f"slowest answer {counts.slowest:.2f} s",
            f"statuses {dict(sorted(counts.statuses.items()))}",
            f"meanwhile written: {result.documents_written}, requests {dict(result.written.asked)}",
            *_shown("foreign", [*counts.foreign, *result.written.foreign]),
            *_shown("error", [*counts.wrong, *result.written.wrong]),
            *_shown("difference", result.differences),
            f"foreign hits: {result.foreign}",
            f"unexpected answers: {result.wrong}",
            f"tenants that do not have what they put: {len(result.differences)}",
            f"VERDICT: {'nothing leaked' if result.nothing_leaked else 'FAILED'}",
        ]
    )


def _shown(kind: str, found: Sequence[str]) -> list[str]:
    return [f"{kind}: {item}" for item in found[:SHOWN]]


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tenants", type=int, default=1_000)
    parser.add_argument("--queries", type=int, default=100_000)
    parser.add_argument("--at-once", type=int, default=16, help="queries that are open at the same time")
    parser.add_argument("--writers", type=int, default=4, help="who write at the same time")
    parser.add_argument("--processes", type=int, default=2, help="of the service")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--leak", choices=LEAKS, default="")
    arguments = parser.parse_args()
    _say(f"seed {arguments.seed}")
    size = Size(
        arguments.tenants,
        arguments.queries,
        arguments.at_once,
        arguments.writers,
        arguments.processes,
        arguments.seed,
    )
    with own_installation() as installation:
        result = run(installation, size, arguments.leak)
    sys.stdout.write(f"{report(result)}\nseed {arguments.seed}\n")
    return 0 if result.nothing_leaked else 1


if __name__ == "__main__":
    sys.exit(main())
