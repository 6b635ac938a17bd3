"""One tenant sends far more than the service can answer, and another one little: what the second one notices.

By hand, with a `serve` that runs: `python -m tests.chaos.crowding URL TOKEN OTHER_TOKEN`.
"""

import asyncio
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

import httpx2

PATH = "/api/v1/tools/search"
QUERIES = ("create an invoice", "delete a branch", "share a photo", "export a contract", "search for a flight")


@dataclass
class Sent:
    """What a client was answered: how many by status, and the seconds of those with 200."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    @property
    def p95(self) -> float:
        return sorted(self.seconds)[int(len(self.seconds) * 0.95)] if self.seconds else float("inf")

    @property
    def median(self) -> float:
        return sorted(self.seconds)[len(self.seconds) // 2] if self.seconds else float("inf")

    @property
    def refused(self) -> int:
        return self.statuses.total() - self.statuses[200]


async def send_steadily(url: str, token: str, per_second: float, seconds: float) -> Sent:
    """Send at a fixed rate, whether earlier requests are answered or not."""
    sent, tasks = Sent(), set[asyncio.Task[None]]()
    limits = httpx2.Limits(max_connections=500, max_keepalive_connections=500)
    async with httpx2.AsyncClient(base_url=url, timeout=30, limits=limits, trust_env=False) as client:
        began = time.monotonic()
        for number in range(int(per_second * seconds)):
            await asyncio.sleep(max(0.0, began + number / per_second - time.monotonic()))
            tasks.add(asyncio.create_task(_send(client, token, QUERIES[number % len(QUERIES)], sent)))
        await asyncio.gather(*tasks)
    return sent


async def _send(client: httpx2.AsyncClient, token: str, query: str, sent: Sent) -> None:
    began = time.perf_counter()
    try:
        answer = await client.post(PATH, json={"query": query}, headers={"Authorization": f"Bearer {token}"})
    except httpx2.HTTPError:
        sent.statuses[0] += 1
        return
    sent.statuses[answer.status_code] += 1
    if answer.status_code == 200:
        sent.seconds.append(time.perf_counter() - began)


def main(url: str, token: str, per_second: str, seconds: str) -> None:
    sent = asyncio.run(send_steadily(url, token, float(per_second), float(seconds)))
    sys.stdout.write(f"{dict(sent.statuses)} p95 {sent.p95:.3f} s, median {sent.median:.3f} s\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
