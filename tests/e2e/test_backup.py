"""`toolscript backup` under writes and searches, and `toolscript restore` into other engines or a running one."""

import json
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.conftest import Installation, fresh_database, fresh_installation
from tests.e2e import catalog_files
from tests.e2e.commands import run, run_here
from tests.e2e.tenants.clients import Client, again_and_again
from tests.e2e.tenants.service import SOON, Service, served
from tests.support.audit_entries import by_me
from tests.support.token_issuer import Issuer
from toolscript.core.settings.service import Settings

TOPICS = ("lighthouses", "espresso machines", "tax returns", "violins", "glaciers", "chess openings")
QUERIES = ("how is coffee made", "ships at night", "ice that moves", "a game on a board")
TENANTS = ("acme", "zeta")
ITEMS = 60


@pytest.fixture
def target(engines: Settings, migrated_database: str, model_folder: str) -> Iterator[Installation]:
    """Yield another installation: its own database, collections and library."""
    with (
        fresh_database(engines, migrated_database) as url,
        fresh_installation(engines, url, model_folder) as fresh,
    ):
        yield fresh


@dataclass
class Written:
    """What was acknowledged: of `changing` the number of its last text, and the documents that were put."""

    number: int = 0
    documents: list[str] = field(default_factory=list)


def _long(number: int) -> str:
    """Return a text of some thirty chunks, each of which names the number."""
    return " ".join(f"Paragraph {part} of text {number} is about glaciers and violins." for part in range(600))


def _write(client: Client, written: Written) -> None:
    number = written.number + 1
    client.put(**{"changing": _long(number), f"new{number}": f"number {number}"})
    written.number = number
    written.documents.append(f"new{number}")


def _text(service: Service, issuer: Issuer, tenant: str, id_: str) -> str:
    headers = {"authorization": f"Bearer {issuer.token(tenant)}"}
    url = f"{service.url}/api/v1/documents/{id_}"
    answer = httpx2.get(url, headers=headers, trust_env=False, verify=False, timeout=SOON)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["text"])


@contextmanager
def _tenants(service: Service, issuer: Issuer, *names: str) -> Iterator[dict[str, Client]]:
    with ExitStack() as stack:
        yield {name: stack.enter_context(Client(service.url, issuer.token(name))) for name in names}


def _fill(clients: dict[str, Client]) -> None:
    for name, client in clients.items():
        texts = {f"d{number}": f"All about {topic}, for {name}. " * 30 for number, topic in enumerate(TOPICS)}
        client.put(**texts)


def _sync(environment: dict[str, str], folder: Path, words: str) -> None:
    rows = catalog_files.rows(ITEMS)
    changed = [{**row, "description": f"{row['description']} {words}"} for row in rows[:10]] + rows[10:]
    run(environment, "sync", str(catalog_files.write(folder / "items.jsonl", changed)))
    run(environment, "worker", "--drain")


def _answers(client: Client) -> dict[str, Any]:
    """Return the answers that no document of the writers is in."""
    stable = {f"d{number}" for number in range(len(TOPICS))}
    return {query: [hit for hit in client.find(query, 200) if hit[0] in stable] for query in QUERIES}


def _search(client: Client) -> None:
    assert any(_answers(client).values())


def _doctor(environment: dict[str, str], code: int = 0) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(run_here(environment, "doctor", "--index", "--json", code=code).stdout)
    return report


@pytest.mark.requirement("OP-003")
def test_a_backup_under_writes_is_restored_with_all_that_was_acknowledged_and_nothing_half(
    installation: Installation, target: Installation, tmp_path: Path
) -> None:
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    (shelf / "bees.md").write_text("# Bees\n\nA hive needs a dry place.\n", "utf-8")
    folder, written = tmp_path / "backup", Written()
    with served(installation) as (service, issuer), _tenants(service, issuer, *TENANTS) as clients:
        environment = dict(service.environment)
        _fill(clients)
        _sync(environment, tmp_path, "first")
        run(environment, "ingest", str(shelf), "--base", str(shelf))
        before = {name: _answers(client) for name, client in clients.items()}
        rounds = iter(range(1_000))
        with (
            again_and_again(lambda: _write(clients["acme"], written)),
            again_and_again(lambda: _sync(environment, tmp_path, f"round {next(rounds)}")),
            again_and_again(lambda: _search(clients["zeta"])),
        ):
            _until(lambda: written.number >= 3)
            at_start, documents = written.number, list(written.documents)
            saved = json.loads(run(environment, "backup", str(folder), "--json").stdout)
    assert saved["items"] == ITEMS
    assert saved["left_out"] == []
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.rglob("*") if file.is_file()} == {0o600}

    with served(target) as (service, issuer):
        environment = dict(service.environment)
        service.stop()
        done = json.loads(run_here(environment, "restore", str(folder), "--json").stdout)
        assert done["doctor"]["missing"] == done["doctor"]["stale"] == done["doctor"]["extra"] == 0
        report = _doctor(environment)
        assert (report["items"], report["missing"], report["stale"], report["extra"]) == (ITEMS, 0, 0, 0)
        run_here(environment, "worker", "--drain")
        assert _doctor(environment)["pending"] == 0
        assert done["library"] == {"to_index": 0, "dropped": 0}
        service.start()
        with _tenants(service, issuer, *TENANTS) as clients:
            assert {name: _answers(client) for name, client in clients.items()} == before
            assert set(documents) <= clients["acme"].ids()
            text = _text(service, issuer, "acme", "changing")
            number = int(text.split()[4])
            assert number >= at_start
            assert text == _long(number)
            assert clients["zeta"].ids() == {f"d{number}" for number in range(len(TOPICS))}
            clients["acme"].put(later="A document that is put after the restore.")
        refused = run_here(environment, "restore", str(folder), code=2)
        assert "there is data already" in refused.stderr
        assert "--replace" in refused.stderr


def _until(holds: Any) -> None:
    ends_at = time.monotonic() + SOON
    while not holds():
        assert time.monotonic() < ends_at
        time.sleep(0.02)


@pytest.mark.parametrize("saved_alone", [True, False], ids=["of the tenant", "of everything"])
def test_one_tenant_comes_back_in_a_running_service_and_others_are_not_touched(
    installation: Installation, tmp_path: Path, *, saved_alone: bool
) -> None:
    folder = str(tmp_path / "backup")
    with served(installation) as (service, issuer), _tenants(service, issuer, *TENANTS) as clients:
        environment = dict(service.environment)
        _fill(clients)
        before = {name: _answers(client) for name, client in clients.items()}
        run_here(environment, "backup", folder, *(("--tenant", "acme") if saved_alone else ()))
        refused = run_here(environment, "restore", folder, "--tenant", "acme", code=2)
        assert "tenant acme has" in refused.stderr
        run_here(environment, "tenants", "erase", "acme", "--yes")
        assert clients["acme"].ids() == set()
        clients["zeta"].put(kept="what was put since")
        done = run_here(environment, "restore", folder, "--tenant", "acme", "--json")
        assert json.loads(done.stdout)["documents"] == len(TOPICS)
        assert {name: _answers(client) for name, client in clients.items()} == before
        assert "kept" in clients["zeta"].ids()
        clients["acme"].put(d0="something else", newer="put later")
        replaced = run_here(environment, "restore", folder, "--tenant", "acme", "--replace", "--yes", "--json")
        assert json.loads(replaced.stdout)["tenant"] == "acme"
        assert _answers(clients["acme"]) == before["acme"]
        assert "newer" not in clients["acme"].ids()
        unknown = run_here(environment, "restore", folder, "--tenant", "nobody", code=2)
        assert "nobody" in unknown.stderr
        listed = json.loads(run_here(environment, "tenants", "list", "--json").stdout)["results"]
        assert [tenant["name"] for tenant in listed] == list(TENANTS)
        entries = by_me(environment, "backup.restore", "tenant.erase")
        assert entries == [("tenant.erase", len(TOPICS)), *[("backup.restore", 1)] * 2]


def test_a_damaged_backup_is_refused_before_anything_is_touched(
    installation: Installation, target: Installation, tmp_path: Path
) -> None:
    folder = tmp_path / "backup"
    with served(installation) as (service, issuer), _tenants(service, issuer, "acme") as clients:
        _fill(clients)
        run_here(dict(service.environment), "backup", str(folder))
    snapshot = min(folder.glob("qdrant/*.snapshot"))
    content = bytearray(snapshot.read_bytes())
    content[len(content) // 2] ^= 1
    snapshot.write_bytes(content)
    checked = run_here(target.environment, "restore", str(folder), "--check", code=2)
    assert f"the backup in {folder} is damaged" in checked.stderr
    with served(target) as (service, issuer), _tenants(service, issuer, "other") as clients:
        clients["other"].put(mine="what is there")
        environment = dict(service.environment)
        refused = run_here(environment, "restore", str(folder), "--replace", "--yes", code=2)
        assert "is damaged" in refused.stderr
        assert clients["other"].ids() == {"mine"}


def test_lost_documents_come_back_and_a_backup_without_them_is_refused(
    installation: Installation, tmp_path: Path
) -> None:
    whole, without = tmp_path / "whole", tmp_path / "without"
    with served(installation) as (service, issuer), _tenants(service, issuer, *TENANTS) as clients:
        environment = dict(service.environment)
        _fill(clients)
        before = {name: _answers(client) for name, client in clients.items()}
        run_here(environment, "backup", str(whole))
        refused = run_here(environment, "restore", str(whole), "--documents", code=2)
        assert "there is data already" in refused.stderr
        with Client(service.url, issuer.token("late")) as late:
            late.put(new="put after the backup")
        _lose_documents(environment)
        gone = run_here(environment, "backup", str(without), code=2)
        assert "documents are on record, and their index is lost" in gone.stderr
        assert "`toolscript restore FOLDER --documents`" in gone.stderr
        assert not without.exists()
        done = json.loads(run_here(environment, "restore", str(whole), "--documents", "--json").stdout)
        assert (done["tenants"], done["half_written_dropped"], done["tenants_without"]) == (2, 0, ["late"])
        ready = f"{service.url}/readyz"
        _until(lambda: httpx2.get(ready, trust_env=False, verify=False).json()["parts"]["documents"]["ok"])
        assert {name: _answers(client) for name, client in clients.items()} == before


def _lose_documents(environment: dict[str, str]) -> None:
    url = f"{environment['TOOLSCRIPT_QDRANT_URL']}/collections"
    alias = environment["TOOLSCRIPT_QDRANT_DOCUMENTS_ALIAS"]
    listed = httpx2.get(url, trust_env=False, timeout=SOON).json()["result"]["collections"]
    for name in [entry["name"] for entry in listed if entry["name"].startswith(f"{alias}__")]:
        httpx2.delete(f"{url}/{name}", trust_env=False, timeout=SOON)
