"""`toolscript backup` of 100,000 items and as many chunks under writes; `restore` into empty engines."""

import json
import logging
import random
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.conftest import Installation, fresh_database, fresh_installation
from tests.e2e import catalog_files
from tests.e2e.commands import command, environment
from tests.e2e.tenants.clients import Client, again_and_again
from tests.e2e.tenants.service import SOON, Service, served
from tests.support.own_engines import own_engines
from toolscript.core.postgres.migrate import upgrade

# Its sibling with sixty items is in test_backup.py.
pytestmark = [pytest.mark.nightly, pytest.mark.requirement("OP-003")]

ITEMS, CHUNKS, BATCH = 100_000, 100_000, 500
SAMPLES = 500
TENANTS = {"acme": 0.9, "zeta": 0.1}
WORDS = (
    "lighthouse",
    "espresso",
    "violin",
    "glacier",
    "chess",
    "harbour",
    "meadow",
    "copper",
    "sonata",
    "orchard",
)

logger = logging.getLogger(__name__)


@contextmanager
def empty_installation() -> Iterator[Installation]:
    """On engines of its own, which have nothing."""
    with own_engines() as engines:
        settings = engines.settings
        with fresh_database(settings, "template1") as url:
            upgrade(url)
            with fresh_installation(settings, url, "words") as fresh:
                yield fresh


def run(variables: Mapping[str, str], *arguments: str) -> str:
    """Run a command that may take an hour, and return what it printed."""
    done = subprocess.run(
        command(*arguments),
        check=False,
        env=environment(variables),
        capture_output=True,
        text=True,
        timeout=3_600,
    )
    assert done.returncode == 0, f"{arguments}: {done.stdout[-2_000:]}{done.stderr[-2_000:]}"
    return done.stdout


@dataclass
class Written:
    """The ids of the documents whose put was acknowledged."""

    ids: list[str] = field(default_factory=list)


@contextmanager
def took(what: str) -> Iterator[None]:
    started = time.monotonic()
    yield
    logger.warning("%s: %.0f s", what, time.monotonic() - started)


def text_of(number: int) -> str:
    chosen = random.Random(number).sample(WORDS, 3)
    return f"Note {number} of the archive is about {', '.join(chosen)} and w{number}."


def fill(clients: dict[str, Client]) -> None:
    """Put documents of one chunk each."""
    for name, share in TENANTS.items():
        count = int(CHUNKS * share)
        for start in range(0, count, BATCH):
            texts = {f"d{number}": text_of(number) for number in range(start, min(start + BATCH, count))}
            clients[name].put(**texts)


def sync(variables: Mapping[str, str], rows: Sequence[dict[str, object]], folder: Path) -> None:
    run(variables, "sync", str(catalog_files.write(folder / "items.jsonl", list(rows))))
    run(variables, "worker", "--drain")


class Sampled:
    """The same requests again: notes of a tenant that nobody writes to, and tools by their text."""

    def __init__(self, url: str, client: Client, rows: Sequence[dict[str, object]]) -> None:
        chosen = random.Random(1)
        self.notes = [text_of(chosen.randrange(int(CHUNKS * TENANTS["zeta"]))) for _ in range(SAMPLES)]
        self.tools = [str(row["description"]) for row in chosen.sample(rows, SAMPLES)]
        self._url, self._client = f"{url}/api/v1/tools/search", client

    def answers(self) -> dict[str, Any]:
        found: dict[str, Any] = {text: self._client.find(text) for text in self.notes}
        with httpx2.Client(timeout=SOON, trust_env=False, verify=False) as http:
            return found | {text: self._first_tool(http, text) for text in self.tools}

    def _first_tool(self, http: httpx2.Client, text: str) -> object:
        answer = http.post(self._url, json={"query": text, "limit": 1, "strategy": "direct", "threshold": 0})
        assert answer.status_code == 200, answer.text
        return [(hit["server"], hit["name"], round(hit["score"], 3)) for hit in answer.json()["results"]]


def put_more(client: Client, written: Written) -> None:
    new = {f"new{len(written.ids) + place}": f"Put meanwhile, {len(written.ids) + place}." for place in range(10)}
    client.put(**new)
    written.ids.extend(new)


def search(client: Client) -> None:
    assert client.find(text_of(7))


def missing(service: Service, token: str, ids: Sequence[str]) -> list[str]:
    """Return the ids of documents that a tenant does not have."""
    with httpx2.Client(
        base_url=service.url,
        headers={"authorization": f"Bearer {token}"},
        timeout=SOON,
        trust_env=False,
        verify=False,
    ) as http:
        return [id_ for id_ in ids if http.get(f"/api/v1/documents/{id_}").status_code != 200]


def size_of(folder: Path) -> dict[str, int]:
    """Return the bytes of each part."""
    return {
        part.name: sum(
            file.stat().st_size for file in (part.rglob("*") if part.is_dir() else [part]) if file.is_file()
        )
        for part in sorted(folder.iterdir())
    }


def test_a_large_backup_has_what_was_acknowledged_and_answers_as_at_its_moment(
    installation: Installation, tmp_path: Path
) -> None:
    folder, alone, written = tmp_path / "backup", tmp_path / "acme", Written()
    rows = catalog_files.rows(ITEMS)
    with served(installation) as (service, issuer):
        variables = dict(service.environment)
        with Client(service.url, issuer.token("acme")) as acme, Client(service.url, issuer.token("zeta")) as zeta:
            with took("items"):
                sync(variables, rows, tmp_path)
            with took("documents"):
                fill({"acme": acme, "zeta": zeta})
            sampled = Sampled(service.url, zeta, rows)
            with took("answers"):
                before = sampled.answers()
            with (
                again_and_again(lambda: put_more(acme, written)),
                again_and_again(lambda: search(zeta)),
            ):
                at_start = list(written.ids)
                with took("backup"):
                    saved = json.loads(run(variables, "backup", str(folder), "--json"))
            with took("backup of a tenant"):
                run(variables, "backup", str(alone), "--tenant", "zeta")
    logger.warning("backup: %s; of a tenant: %s", size_of(folder), size_of(alone))
    assert saved["items"] == ITEMS
    assert saved["chunks"] >= CHUNKS
    assert saved["left_out"] == []

    with empty_installation() as target, served(target) as (service, issuer):
        variables = dict(service.environment)
        service.stop()
        with took("restore"):
            done = json.loads(run(variables, "restore", str(folder), "--json"))
        report = json.loads(run(variables, "doctor", "--index", "--json"))
        assert (report["items"], report["missing"], report["stale"], report["extra"]) == (ITEMS, 0, 0, 0)
        assert done["doctor"]["missing"] == done["doctor"]["stale"] == done["doctor"]["extra"] == 0
        service.start()
        with Client(service.url, issuer.token("zeta")) as zeta:
            after = Sampled(service.url, zeta, rows).answers()
            otherwise = {text: (before[text], after[text]) for text in before if before[text] != after[text]}
            assert otherwise == {}
            assert missing(service, issuer.token("acme"), at_start) == []
            run(variables, "tenants", "erase", "zeta", "--yes")
            assert zeta.ids() == set()
            with took("restore of a tenant"):
                run(variables, "restore", str(alone), "--tenant", "zeta")
            assert {text: zeta.find(text) for text in sampled.notes} == {
                text: before[text] for text in sampled.notes
            }
