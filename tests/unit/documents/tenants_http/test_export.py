"""`toolscript tenants export`: all documents of a tenant as they were put, and none of others."""

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
from toolscript.documents.model.document import Document, document_key, parse_line
from toolscript.documents.qdrant.tenant_points import Span, TenantPoints

pytestmark = pytest.mark.requirement("DOC-004", "DOC-006")

MANY = 450


def read(lines: bytes) -> list[Document]:
    entries = [parse_line(line) for line in lines.splitlines()]
    assert all(isinstance(entry, Document) for entry in entries)
    return [entry for entry in entries if isinstance(entry, Document)]


@pytest.fixture(scope="module")
def filled(engines: Settings, migrated_database: str, model_folder: str) -> Iterator[Tenants]:
    """Documents of ann and bob, which no test changes. A test that writes uses another tenant."""
    with (
        fresh_database(engines, migrated_database) as url,
        fresh_installation(engines, url, model_folder) as fresh,
    ):
        tenants = Tenants(fresh)
        tenants.put("ann", documents(MANY))
        tenants.put("bob", documents(30, about="trains"))
        yield tenants


def test_an_export_has_each_document_once_ordered_by_key(filled: Tenants, tmp_path: Path) -> None:
    path = tmp_path / "ann.jsonl"
    written = filled.json("export", "ann", "--out", str(path))
    assert (written["documents"], written["left_out"]) == (MANY, [])
    exported = read(path.read_bytes())
    assert {document.id: document for document in exported} == {
        document.id: document for document in documents(MANY)
    }
    keys = [document_key(Tenant("ann"), document.id) for document in exported]
    assert keys == sorted(set(keys))
    filled.put("carl", exported)
    again = filled.json("export", "carl", "--out", str(tmp_path / "carl.jsonl"))
    assert again["documents"] == MANY
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("cut", [0, 1, 700, -1], ids=["all", "in the first line", "in the middle", "at the end"])
def test_an_interrupted_export_resumes_where_it_stopped(filled: Tenants, tmp_path: Path, cut: int) -> None:
    path = tmp_path / "ann.jsonl"
    filled("export", "ann", "--out", str(path))
    whole = path.read_bytes()
    path.write_bytes(whole[:cut])
    resumed = filled.json("export", "ann", "--out", str(path))
    assert path.read_bytes() == whole
    assert resumed["documents"] == MANY - whole[:cut].count(b"\n")
    assert filled.json("export", "ann", "--out", str(path))["documents"] == 0
    assert path.read_bytes() == whole


def test_a_file_that_is_not_an_export_of_this_tenant_is_not_changed(filled: Tenants, tmp_path: Path) -> None:
    theirs, other = tmp_path / "bob.jsonl", tmp_path / "notes.txt"
    filled("export", "bob", "--out", str(theirs))
    other.write_text("milk\nbread\n")
    for path in (theirs, other):
        before = path.read_bytes()
        _, stderr = filled("export", "ann", "--out", str(path), code=2)
        assert "export" in stderr
        assert "choose a file that does not exist yet" in stderr
        assert path.read_bytes() == before


def test_an_export_to_stdout_is_nothing_but_documents(filled: Tenants) -> None:
    done = commands.run(filled.installation.environment, "tenants", "export", "bob")
    assert {document.id for document in read(done.stdout.encode())} == {
        document.id for document in documents(30, about="trains")
    }
    assert "30 documents exported" in done.stderr
    _, stderr = filled("export", "bob", "--json", code=2)
    assert "--out" in json.loads(stderr)["error"]["details"]["hint"]


def test_an_incomplete_document_is_left_out_and_named(filled: Tenants, tmp_path: Path) -> None:
    """As after a writer that was killed."""
    broken = next(document.id for document in documents(30) if len(document.text) > 2_000)

    async def tear(engines: Engines) -> None:
        points = TenantPoints(engines.engine, engines.index.collection, Tenant("dan"))
        torn = ChunkId(document_key(Tenant("dan"), broken), 1)
        await points.remove_versions([Span([torn], 0, 2**60)])

    filled.put("dan", documents(30))
    filled.on_engines(tear)
    path = tmp_path / "dan.jsonl"
    stdout, stderr = filled("export", "dan", "--out", str(path), code=2)
    assert "29 documents written" in stdout
    assert f"{broken} is being written" in stderr
    assert broken not in {document.id for document in read(path.read_bytes())}


def test_the_export_of_an_empty_tenant_is_empty(filled: Tenants, tmp_path: Path) -> None:
    assert filled.json("export", "nobody", "--out", str(tmp_path / "none.jsonl"))["documents"] == 0
    assert (tmp_path / "none.jsonl").read_bytes() == b""
