"""What an index of documents was built with."""

import hashlib
import json
from dataclasses import asdict, dataclass

from toolscript.model.models import ModelCard
from toolscript.model.passages import PASSAGES_VERSION
from toolscript.model.words import WORDS_VERSION


@dataclass(frozen=True)
class DocumentCard:
    """Equal cards, interchangeable vectors and words."""

    model: ModelCard
    words_version: int = WORDS_VERSION
    passages_version: int = PASSAGES_VERSION

    @property
    def fingerprint(self) -> str:
        canonical = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()[:12]
