"""The files of one index: offers, words and embeddings of one set of servers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolscript.adapters.gateway_files import AnalysisFile, EmbeddingFile, OfferFile
from toolscript.model.models import IndexCard
from toolscript.model.servers import Offer, ServerSpec
from toolscript.ports import Embedder
from toolscript.search.local import Analysed


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
