"""Models by name, from fastembed's list."""

import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from fastembed import TextEmbedding
from fastembed.common.utils import define_cache_dir
from huggingface_hub.constants import ENDPOINT
from loguru import logger as fastembed_log

from toolscript.core.embedding.download import REACH_SECONDS, download
from toolscript.core.embedding.download_failures import MODEL_ALIASES, is_path
from toolscript.core.embedding.engine import (
    Device,
    EncodedText,
    Loaded,
    TokenCounter,
    digest_of,
    mixes_batches,
    prefixes_of,
    providers_for,
)
from toolscript.core.errors import ModelNotFound, ModelUnknown
from toolscript.core.retrieval.model import Matrix, ModelCard
from toolscript.core.values import OnProgress


class NamedEngine:
    def __init__(self, engine: TextEmbedding) -> None:
        self._engine = engine
        self._counter: TokenCounter | None = None

    def encode(self, texts: Sequence[str]) -> list[EncodedText]:
        """Count tokens for batches: the library encodes texts once more itself. One text needs no count."""
        if len(texts) == 1:
            return [EncodedText(texts[0], 0)]
        self._counter = self._counter or self.token_counter()
        return [EncodedText(text, self._counter(text)) for text in texts]

    def embed_encoded(self, texts: Sequence[EncodedText]) -> Matrix:
        vectors = self._engine.embed([text.text for text in texts], batch_size=len(texts))
        return np.stack(list(vectors)).astype(np.float32)

    def token_counter(self) -> TokenCounter:
        return TokenCounter(self._engine.model.tokenizer)  # type: ignore[attr-defined]


def load_named(
    name: str, threads: int | None, device: Device, downloads: Path | None, on_progress: OnProgress
) -> Loaded:
    """Load the model from this machine, or download it first."""
    # fastembed logs every failed attempt; our error reports the outcome.
    fastembed_log.disable("fastembed")
    model = known_name(name)
    folder = str(downloads) if downloads else None
    providers = providers_for(device)
    try:
        engine = TextEmbedding(
            model, cache_dir=folder, threads=threads, providers=providers, local_files_only=True
        )
    except ValueError:
        download_model(model, downloads, on_progress)
        engine = TextEmbedding(
            model, cache_dir=folder, threads=threads, providers=providers, local_files_only=True
        )
    return Loaded(NamedEngine(engine), _card(model, engine), mixes_batches(_path(engine)))


def download_model(model: str, downloads: Path | None, on_progress: OnProgress) -> None:
    """Download without fastembed, which waits 39 s before it reports a refusal and does not check the files."""
    described = next(
        supported_model
        for supported_model in TextEmbedding.list_supported_models()
        if supported_model["model"] == model
    )
    if described["sources"].get("hf"):
        download(model, described, downloads or Path(define_cache_dir()), on_progress)
        return
    require_network(f"the embedding model {model}", "--model, TOOLSCRIPT_SEARCH_MODEL")
    TextEmbedding(model, cache_dir=str(downloads) if downloads else None, lazy_load=True)


def known_name(name: str) -> str:
    model_names = sorted(str(described["model"]) for described in TextEmbedding.list_supported_models())
    model = MODEL_ALIASES.get(name, name)
    if model in model_names:
        return model
    if is_path(name):
        raise ModelUnknown(
            f"the embedding model {name} cannot be loaded: there is no such folder",
            hint="give the folder of an ONNX model, or a name such as Xenova/bge-small-en-v1.5",
            details={"known_models": model_names},
        )
    raise ModelUnknown(
        f"the embedding model {name} cannot be loaded: no model has this name",
        hint=f"give the folder of an ONNX model, or one of {', '.join([*MODEL_ALIASES, *model_names])}",
        details={"known_models": model_names},
    )


def require_network(what: str, option: str) -> None:
    """Raise at once if the hub cannot be reached; fastembed would wait 39 s."""
    try:
        with urllib.request.urlopen(ENDPOINT, timeout=REACH_SECONDS):  # noqa: S310 - the library's own address
            return
    except urllib.error.HTTPError:
        return
    except OSError as error:
        raise ModelNotFound(
            f"{what} is not on this machine and cannot be downloaded: {ENDPOINT} cannot be reached",
            hint=f"connect to the network once, or give the folder of an ONNX model ({option})",
        ) from error


def _card(model: str, engine: TextEmbedding) -> ModelCard:
    pooling = type(engine.model).__name__
    return ModelCard(model, digest_of(_path(engine)), engine.embedding_size, pooling, *prefixes_of(model))


def _path(engine: TextEmbedding) -> Path:
    inner = engine.model
    folder: Path = Path(inner._model_dir)  # type: ignore[attr-defined]  # noqa: SLF001
    return folder / str(inner.model_description.model_file)  # type: ignore[attr-defined]
