"""Documents are moved to another model or to more shards while tenants search and write; then all is compared.

By hand, in a database and under aliases of their own (removed at the end), to 127.0.0.1 only; ends by itself:

    python -m tests.e2e.tenants.reindexing.under_load --chunks 100000 --model FOLDER --to-model FOLDER
    python -m tests.e2e.tenants.reindexing.under_load --chunks 100000 --model FOLDER --shards 6 --to-shards 12
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import httpx2

from tests.conftest import Installation
from tests.e2e.commands import command, environment
from tests.e2e.tenants.reindexing.traffic import Seen, Shown, Traffic
from tests.e2e.tenants.reindexing.world import World, differing
from tests.e2e.tenants.service import Service, clients, own_installation, served
from tests.support.clusters import fresh_cluster
from tests.support.token_issuer import Issuer
from toolscript.core.settings.service import Settings
from toolscript.documents.qdrant.collection import documents_of
from toolscript.server.document_index import document_layout
from toolscript.server.stores import open_stores

WARM_UP_SECONDS = 10.0
QUIET_LOOKS = 5


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--tenants", type=int, default=100)
    parser.add_argument("--model", required=True, help="folder of the model before")
    parser.add_argument("--to-model", default="", help="folder of the model after")
    parser.add_argument("--shards", type=int, default=0, help="before; a cluster of three is started for it")
    parser.add_argument("--to-shards", type=int, default=0)
    parser.add_argument("--searches", type=float, default=20.0, help="a second")
    parser.add_argument("--puts", type=float, default=5.0, help="a second")
    parser.add_argument("--share", default="0.5")
    parser.add_argument("--before-seconds", type=float, default=60.0)
    return parser.parse_args()


@contextmanager
def installed(given: argparse.Namespace) -> Iterator[Installation]:
    with own_installation() as installation:
        more = {
            "TOOLSCRIPT_EMBEDDING_URL": "",
            "TOOLSCRIPT_EMBEDDING_MODEL": given.model,
            "TOOLSCRIPT_EMBEDDING_DIMENSIONS": "384",
            "TOOLSCRIPT_DOCUMENT_SHARDS": str(given.shards),
        }
        if not given.shards:
            yield Installation({**installation.environment, **more})
            return
        with fresh_cluster() as cluster:
            more["TOOLSCRIPT_QDRANT_URL"] = f"http://127.0.0.1:{cluster.grpc_port(1) - 1}"
            more["TOOLSCRIPT_QDRANT_GRPC_PORT"] = str(cluster.grpc_port(1))
            yield Installation({**installation.environment, **more})


async def reindex(settings: Mapping[str, str], *given: str) -> dict[str, object]:
    process = await asyncio.create_subprocess_exec(
        *command("reindex", "documents", *given, "--json"),
        env=environment(settings),
        stdout=asyncio.subprocess.PIPE,
        stderr=sys.stderr,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    answer: dict[str, object] = json.loads(output)
    return answer


async def measured(given: argparse.Namespace, service: Service, traffic: Traffic) -> dict[str, object]:
    before_answers = await traffic.probed()
    async with traffic.running(given.searches, given.puts):
        await asyncio.sleep(WARM_UP_SECONDS)
    async with traffic.running(given.searches, given.puts) as before:
        await asyncio.sleep(given.before_seconds)
    expected = ["--model", given.to_model] if given.to_model else ["--shards", str(given.to_shards)]
    began = time.monotonic()
    async with traffic.running(given.searches, given.puts) as during:
        done = await reindex(service.environment, *expected, "--share", given.share)
        took = time.monotonic() - began
    after_answers = await traffic.probed()
    report: dict[str, object] = {
        **compared(before, during, before_answers, after_answers),
        "seconds": round(took, 1),
    }
    async with traffic.running(given.searches, given.puts) as later:
        back = await reindex(service.environment, "--rollback", "--share", given.share)
    assert back["live"] == done["previous"]
    report["after the way back the same as before"] = await traffic.probed() == before_answers
    report["failed on the way back"] = (later.failed[:3], later.failed_writes[:3])
    return {**report, "reindex": done, "rollback": back}


def compared(
    before: Seen,
    during: Seen,
    before_answers: Mapping[tuple[str, str], Shown],
    after_answers: Mapping[tuple[str, str], Shown],
) -> dict[str, object]:
    mixed = [item for item, result in during.answers if result not in (before_answers[item], after_answers[item])]
    return {
        "p95 before, ms": round(before.p95, 1),
        "p95 during, ms": round(during.p95, 1),
        "ratio": round(during.p95 / before.p95, 2),
        "searches before": len(before.milliseconds),
        "searches during": len(during.milliseconds),
        "failed searches": (len(during.failed), during.failed[:3]),
        "failed writes": (len(during.failed_writes), during.failed_writes[:3]),
        "probes during": len(during.answers),
        "answers that mix": (len(mixed), mixed[:3]),
        "probes that changed with it": sum(before_answers[item] != after_answers[item] for item in before_answers),
        "puts": during.puts,
        "deletes": during.deletes,
    }


async def run(given: argparse.Namespace, service: Service, issuer: Issuer) -> dict[str, object]:
    names = [f"t{number:03}" for number in range(given.tenants)]
    world = World(names, given.chunks // given.tenants)
    settings = Installation({**service.environment}).settings
    began = time.monotonic()
    await world.load(settings)
    await settled(settings)
    sys.stderr.write(f"loaded in {time.monotonic() - began:.0f} s\n")
    tokens = {name: issuer.token(name, exp=int(time.time()) + 14_400) for name in names}
    async with clients(service.url, 64) as client:
        report = await measured(given, service, Traffic(client, tokens, world))
    return {**report, **await found_in_the_end(settings, world, report)}


async def settled(settings: Settings) -> None:
    """Wait until the engine has built its graphs, so that measurements are comparable."""
    url = f"{settings.qdrant_url}/collections/{settings.qdrant_documents_alias}"
    async with httpx2.AsyncClient() as client:
        quiet = 0
        while quiet < QUIET_LOOKS:
            is_green = (await client.get(url)).json()["result"]["status"] == "green"
            quiet = quiet + 1 if is_green else 0
            await asyncio.sleep(1.0)


async def found_in_the_end(settings: Settings, world: World, report: Mapping[str, object]) -> dict[str, object]:
    done = report["reindex"]
    assert isinstance(done, dict)
    async with open_stores(settings) as stores:
        layout = document_layout(settings)
        new = await documents_of(stores.qdrant, str(done["live"]), layout)
        old = await documents_of(stores.qdrant, str(done["previous"]), layout)
        return {
            "wrong documents": await world.wrong_in(old),
            "pending in the other": len(await differing(old, new, world.tenants)),
        }


def main() -> None:
    received = arguments()
    with (
        installed(received) as installation,
        served(installation, settings=installation.environment) as (service, issuer),
    ):
        for name, value in asyncio.run(run(received, service, issuer)).items():
            sys.stdout.write(f"{name}: {value}\n")


if __name__ == "__main__":
    main()
