"""S4 on the collections of MongoDB and Qdrant, checked after `toolscript ingest`."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx2
import pytest
from bson import ObjectId
from pymongo import MongoClient

from tests.contracts.source.s4_service import CHUNKS, SECTIONS, TITLE, Json, ingest, write_books
from tests.e2e.ingest.holdings import forget, named_library
from toolscript.core.settings.service import Settings

DIMENSIONS = 384


@dataclass(frozen=True)
class Filled:
    """Documents of MongoDB by collection; `qdrant` is the address of the other, `aliases` its two collections."""

    documents: Mapping[str, list[Json]]
    qdrant: str
    aliases: Mapping[str, str]

    def ask(self, path: str, body: Json | None = None) -> Any:
        url = f"{self.qdrant}/collections/{path}"
        requests = httpx2.post(url, json=body, trust_env=False) if body else httpx2.get(url, trust_env=False)
        assert requests.status_code == 200, requests.text
        return requests.json()["result"]

    def payloads(self, name: str) -> list[Json]:
        request = {"limit": 100, "with_payload": True, "with_vector": False}
        return [point["payload"] for point in self.ask(f"{self.aliases[name]}/points/scroll", request)["points"]]


@pytest.fixture(scope="module")
def filled(engines: Settings, model_folder: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    with named_library(engines) as named:
        ingest(
            {**named, "TOOLSCRIPT_EMBEDDING_MODEL": model_folder}, write_books(tmp_path_factory.mktemp("s4") / "b")
        )
        with MongoClient[Json](named["TOOLSCRIPT_MONGO_URL"]) as client:
            database = client[named["TOOLSCRIPT_MONGO_DATABASE"]]
            documents = {name: list(database[name].find()) for name in ("sources", "chunks", "extractions")}
        aliases = {name: named[f"TOOLSCRIPT_QDRANT_{name.upper()}_ALIAS"] for name in ("chunks", "extractions")}
        yield Filled(documents, named["TOOLSCRIPT_QDRANT_URL"], aliases)
        asyncio.run(forget(named))


@pytest.mark.states("S4-123", "S4-124", "S4-125", "S4-126", "S4-127", "S4-128", "S4-129", "S4-130", "S4-131")
@pytest.mark.states("S4-058")
def test_a_source_has_the_fields_of_the_document(filled: Filled) -> None:
    (source,) = [item for item in filled.documents["sources"] if item["title"] == TITLE]
    assert isinstance(source["_id"], ObjectId)
    assert (source["type"], source["authors"], source["status"]) == ("case_study", ["Ann"], "ready")
    assert source["path"].endswith("/bees.md")
    assert datetime.fromisoformat(source["ingested_at"]).tzinfo is not None
    assert isinstance(source["metadata"], dict)
    assert source["schema_version"] == 1


@pytest.mark.states("S4-132", "S4-133", "S4-134", "S4-135", "S4-136", "S4-137")
def test_a_chunk_has_the_fields_of_the_document(filled: Filled) -> None:
    assert len(filled.documents["chunks"]) == CHUNKS
    (chunk,) = [item for item in filled.documents["chunks"] if SECTIONS["Food"] in item["content"]]
    assert isinstance(chunk["_id"], ObjectId)
    assert chunk["source_id"] in {str(item["_id"]) for item in filled.documents["sources"]}
    position = chunk["position"]
    assert (position["chapter"], position["section"], position["page"]) == (TITLE, "Food", None)
    assert [item["position"]["page"] for item in filled.documents["chunks"] if "bridge" in item["content"]] == [2]
    assert 5 < chunk["token_count"] < 60
    assert chunk["schema_version"] == 1


@pytest.mark.states("S4-138", "S4-139", "S4-140", "S4-141", "S4-142", "S4-143", "S4-144", "S4-145")
def test_an_extraction_has_the_fields_of_the_document(filled: Filled) -> None:
    extractions = filled.documents["extractions"]
    assert {item["chunk_id"] for item in extractions} == {str(item["_id"]) for item in filled.documents["chunks"]}
    assert {item["type"] for item in extractions} == {"warning", "decision"}
    (decision,) = [item for item in extractions if item["type"] == "decision"]
    assert isinstance(decision["_id"], ObjectId)
    assert decision["source_id"] in {str(item["_id"]) for item in filled.documents["sources"]}
    assert (decision["content"]["title"], decision["topics"]) == ("To be remembered", ["care"])
    assert decision["content"]["text"].endswith("capped with wax.")
    assert decision["schema_version"] == 1
    assert datetime.fromisoformat(decision["extracted_at"]).tzinfo is not None


@pytest.mark.states("S4-024", "S4-085", "S4-086", "S4-087", "S4-088", "S4-099")
@pytest.mark.parametrize("name", ["chunks", "extractions"])
def test_a_collection_has_vectors_of_the_model_and_their_cosine(filled: Filled, name: str) -> None:
    output = filled.ask(filled.aliases[name])
    assert output["config"]["params"]["vectors"]["dense"] == {"size": DIMENSIONS, "distance": "Cosine"}
    assert output["points_count"] == CHUNKS
    # Without a setting they have the names of the document.
    field = Settings.model_fields[f"qdrant_{name}_alias"]
    assert field.default == name


@pytest.mark.states("S4-089", "S4-090", "S4-091", "S4-092")
def test_points_have_source_and_topics(filled: Filled) -> None:
    sources = {str(item["_id"]) for item in filled.documents["sources"]}
    chunks, extractions = filled.payloads("chunks"), filled.payloads("extractions")
    assert {item["source_id"] for item in (*chunks, *extractions)} == sources
    assert {tuple(item["topics"]) for item in chunks} == {("nature",)}
    assert {tuple(item["topics"]) for item in extractions} == {("nature", "care")}
    assert {item["type"] for item in extractions} == {"warning", "decision"}
    assert {item["chunk_id"] for item in extractions} == {str(item["_id"]) for item in filled.documents["chunks"]}
    assert all("chunk_id" not in item and "type" not in item for item in chunks)
