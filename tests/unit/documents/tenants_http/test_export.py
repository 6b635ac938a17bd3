"""`toolscript tenants export`: everything of a tenant, and nothing of another, as it was put."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import fresh_database, fresh_installation
from tests.e2e import commands
from tests.unit.documents.tenants_http.filled import Engines, Tenants, documents
from toolscript.core.auth.model import Tenant
from toolscript.core.retrieval.results import ChunkId
from toolscript.core.settings.service import Settings
from toolscript.documents.model.document import Document, document_key, line_read
from toolscript.documents.qdrant.tenant_points import Span, TenantPoints

pytestmark = pytest.mark.requirement("DOC-004", "DOC-006")

MANY = 450


def read(lines: bytes) -> list[Document]:
    found = [line_read(line) for line in lines.splitlines()]
    assert all(isinstance(one, Document) for one in found)
    return [one for one in found if isinstance(one, Document)]


@pytest.fixture(scope="module")
def filled(engines: Settings, migrated_database: str, model_folder: str) -> Iterator[Tenants]:
    """What ann and bob have stays as it is. Whoever changes something does so for another tenant."""
    with (
        fresh_database(engines, migrated_database) as url,
        fresh_installation(engines, url, model_folder) as fresh,
    ):
        tenants = Tenants(fresh)
        tenants.put("ann", documents(MANY))
        tenants.put("bob", documents(30, about="trains"))
        yield tenants


def test_an_export_is_what_was_put_once_each_in_the_order_of_keys(filled: Tenants, tmp_path: Path) -> None:
    path = tmp_path / "ann.jsonl"
    written = filled.json("export", "ann", "--out", str(path))
    assert (written["documents"], written["left_out"]) == (MANY, [])
    found = read(path.read_bytes())
    assert {one.id: one for one in found} == {one.id: one for one in documents(MANY)}
    keys = [document_key(Tenant("ann"), one.id) for one in found]
    assert keys == sorted(set(keys))
    filled.put("carl", found)
    again = filled.json("export", "carl", "--out", str(tmp_path / "carl.jsonl"))
    assert again["documents"] == MANY
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("cut", [0, 1, 700, -1], ids=["all", "in the first line", "in the middle", "at the end"])
def test_an_export_that_was_ended_goes_on_where_it_was(filled: Tenants, tmp_path: Path, cut: int) -> None:
    path = tmp_path / "ann.jsonl"
    filled("export", "ann", "--out", str(path))
    whole = path.read_bytes()
    path.write_bytes(whole[:cut])
    gone_on = filled.json("export", "ann", "--out", str(path))
    assert path.read_bytes() == whole
    assert gone_on["documents"] == MANY - whole[:cut].count(b"\n")
    assert filled.json("export", "ann", "--out", str(path))["documents"] == 0
    assert path.read_bytes() == whole


def test_a_file_that_is_no_export_of_this_tenant_is_left_as_it_is(filled: Tenants, tmp_path: Path) -> None:
    theirs, other = tmp_path / "bob.jsonl", tmp_path / "notes.txt"
    filled("export", "bob", "--out", str(theirs))
    other.write_text("milk\nbread\n")
    for path in (theirs, other):
        before = path.read_bytes()
        _, said = filled("export", "ann", "--out", str(path), code=2)
        assert "export" in said
        assert "choose a file that is not there yet" in said
        assert path.read_bytes() == before


def test_an_export_to_stdout_is_nothing_but_documents(filled: Tenants) -> None:
    done = commands.run(filled.installation.environment, "tenants", "export", "bob")
    assert {one.id for one in read(done.stdout.encode())} == {one.id for one in documents(30, about="trains")}
    assert "30 documents exported" in done.stderr
    _, said = filled("export", "bob", "--json", code=2)
    assert "--out" in json.loads(said)["error"]["details"]["hint"]


def test_a_document_of_which_a_part_is_missing_is_left_out_and_named(filled: Tenants, tmp_path: Path) -> None:
    """As if whoever wrote it had been killed."""
    broken = next(one.id for one in documents(30) if len(one.text) > 2_000)

    async def tear(engines: Engines) -> None:
        points = TenantPoints(engines.engine, engines.index.collection, Tenant("dan"))
        torn = ChunkId(document_key(Tenant("dan"), broken), 1)
        await points.remove_versions([Span([torn], 0, 2**60)])

    filled.put("dan", documents(30))
    filled.on_engines(tear)
    path = tmp_path / "dan.jsonl"
    shown, said = filled("export", "dan", "--out", str(path), code=2)
    assert "29 documents written" in shown
    assert f"{broken} is being written" in said
    assert broken not in {one.id for one in read(path.read_bytes())}


def test_a_tenant_that_has_nothing_is_exported_as_nothing(filled: Tenants, tmp_path: Path) -> None:
    assert filled.json("export", "nobody", "--out", str(tmp_path / "none.jsonl"))["documents"] == 0
    assert (tmp_path / "none.jsonl").read_bytes() == b""
