"""A loaded model: its device, its prefixes and its token counter."""

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from toolscript.core.errors import SetupError
from toolscript.core.retrieval.model import Matrix, ModelCard

if TYPE_CHECKING:
    from tokenizers import Tokenizer

GPU_PROVIDERS = (
    "CUDAExecutionProvider",
    "ROCMExecutionProvider",
    "CoreMLExecutionProvider",
    "DmlExecutionProvider",
)
CPU_PROVIDER = "CPUExecutionProvider"

# The prefixes that a model family expects before a query and before a passage.
PREFIXES = {
    "bge-": ("Represent this sentence for searching relevant passages: ", ""),
    "e5-": ("query: ", "passage: "),
}

logger = logging.getLogger(__name__)


class TokenCounter:
    """Counts tokens with a copy of the tokenizer that neither truncates nor pads."""

    def __init__(self, tokenizer: "Tokenizer") -> None:
        self._tokenizer = type(tokenizer).from_str(tokenizer.to_str())
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def __call__(self, text: str) -> int:
        """Return the number of tokens, without the special tokens."""
        encodable = text.encode("utf-8", "replace").decode()
        return len(self._tokenizer.encode(encodable, add_special_tokens=False).ids)


class Device(StrEnum):
    AUTO = "auto"
    CPU = "cpu"
    GPU = "gpu"


@dataclass(frozen=True)
class EncodedText:
    """A text and its tokens. Where the engine encodes texts itself, `ids` is empty and `tokens` an estimate."""

    text: str
    tokens: int
    ids: Sequence[int] = ()
    type_ids: Sequence[int] = ()


class Engine(Protocol):
    def encode(self, texts: Sequence[str]) -> list[EncodedText]: ...
    def embed_encoded(self, texts: Sequence[EncodedText]) -> Matrix: ...
    def token_counter(self) -> TokenCounter: ...


@dataclass(frozen=True)
class Loaded:
    """`mixes_batches`: the vector of a text depends on the other texts of its batch."""

    engine: Engine
    card: ModelCard
    mixes_batches: bool = False


def providers_for(device: Device) -> list[str]:
    """Return the ONNX execution providers, best first. Raise if a GPU is required and there is none."""
    from onnxruntime import get_available_providers

    available = get_available_providers()
    gpus = [provider for provider in GPU_PROVIDERS if provider in available]
    if device is Device.GPU and not gpus:
        raise SetupError(
            "a GPU is required, but ONNX Runtime finds none",
            hint="install onnxruntime-gpu, or set TOOLSCRIPT_SEARCH_DEVICE=auto",
            details={"available": available},
        )
    used = [] if device is Device.CPU else gpus
    logger.debug("GPU is %s for the embedding model", "enabled" if used else "disabled", extra={"part": "model"})
    return [*used, CPU_PROVIDER]


def prefixes_of(name: str) -> tuple[str, str]:
    return next((pair for family, pair in PREFIXES.items() if family in name.lower()), ("", ""))


def mixes_batches(path: Path) -> bool:
    """Return whether a model scales its numbers by those of the whole batch, as dynamic quantization does."""
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as graph:
        return graph.find(b"DynamicQuantizeLinear") >= 0


def digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]
