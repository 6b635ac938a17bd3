"""The files of one index: offers, words and embeddings of one set of servers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolscript.core.mcp_client.model import Offer, ServerSpec
from toolscript.core.retrieval.model import IndexCard
from toolscript.core.retrieval.ports import Embedder
from toolscript.gateway.index import Analysed
from toolscript.gateway.store.embeddings import AnalysisFile, EmbeddingFile
from toolscript.gateway.store.offers import OfferFile


@dataclass(frozen=True)
class IndexFiles:
    """What a second start need not do again. Each is written when it differs from what was written before."""

    folder: Path
    servers: Sequence[str]
    offers: OfferFile
    words: AnalysisFile

    @classmethod
    def of(cls, folder: Path, specs: Sequence[ServerSpec]) -> "IndexFiles":
        names = [spec.name for spec in specs]
        return cls(folder, names, OfferFile(folder / "tools", specs), AnalysisFile(folder / "words", names))

    def embeddings(self, embedder: Embedder) -> EmbeddingFile:
        return EmbeddingFile(self.folder / "embeddings", self.servers, IndexCard(embedder.model))

    def remember(
        self, offers: Sequence[Offer], failed: Mapping[str, str], analysed: Mapping[str, Analysed]
    ) -> bool:
        self.words.remember(analysed)
        return self.offers.remember(offers, failed)
