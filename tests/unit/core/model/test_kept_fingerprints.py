"""Names under which indexes, documents and chunks are stored. A changed one loses what is stored already.

Where the way that text becomes words or vectors changes, its version does, too, and the names with it: see
CONTRIBUTING.md. Then this table changes in the same commit.
"""

from toolscript.core.auth.model import Tenant
from toolscript.core.embedding.static_table import StaticEmbedder
from toolscript.core.items import Item, ItemKind
from toolscript.core.retrieval.model import IndexCard, ModelCard
from toolscript.core.retrieval.terms import query_terms
from toolscript.documents.model.document import document_key
from toolscript.documents.model.points import DocumentCard
from toolscript.knowledge.ingest.report import Described
from toolscript.knowledge.model.library import chunk_id, extraction_id, source_id

MODEL = ModelCard("sentence-transformers/all-MiniLM-L6-v2", "c9745ed1", 384)
PREFIXED = ModelCard("BAAI/bge-small-en-v1.5", "5c38ec7c", 384, "cls", "query: ", "passage: ")
ITEM = Item("k", ItemKind.TOOL, "files", "read_file", "Reads a file", input_schema={"type": "object"})

KEPT: dict[str, tuple[object, object]] = {
    "an index of tools": (IndexCard(MODEL).fingerprint, "4707b20613e7"),
    "one with prefixes": (IndexCard(PREFIXED).fingerprint, "f9c06d128200"),
    "one of the built-in model": (IndexCard(StaticEmbedder().model).fingerprint, "610ec1bda24e"),
    "documents": (DocumentCard(MODEL).fingerprint, "52d951368dfa"),
    "an item": (ITEM.fingerprint, "85b712bb5ae2cdbf1f366102814d9baccf9755bedeb71c1b84dd47417f7837aa"),
    "a document": (document_key(Tenant("acme"), "handbook/leave.md"), "f64c28ebe79a3bb983061183"),
    "a source": (source_id("books/sea.md"), "f11b9e52aa0d302311d60702"),
    "a chunk": (chunk_id("books", "The sea is deep.", 1), "63686e6bb66d797b027d2fc5"),
    "an extraction": (extraction_id(chunk_id("books", "The sea is deep."), 2), "657874720a7f194e91043802"),
    "a chunking": (Described().fingerprint, "bf97d6e57aa6"),
    "words": (
        sorted(query_terms("Reading größere files")),
        [79486044, 146017006, 1368705760, 2031435825, 3355435111, 4025456441],
    ),
}


def test_what_is_stored_is_found_under_the_name_it_has() -> None:
    assert {of: made for of, (made, kept) in KEPT.items() if made != kept} == {}
