"""What a gateway keeps on disk so that a second start is quick. All of it can be thrown away."""

from toolscript.adapters.gateway_files.analyses import AnalysisFile
from toolscript.adapters.gateway_files.embeddings import EmbeddingFile
from toolscript.adapters.gateway_files.offers import Failed, OfferFile, Remembered
from toolscript.adapters.gateway_files.seen import ToolChange

__all__ = ["AnalysisFile", "EmbeddingFile", "Failed", "OfferFile", "Remembered", "ToolChange"]
