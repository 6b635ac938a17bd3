"""A sentence-transformers model as ONNX in a folder, run with ONNX Runtime alone: it loads in a quarter of the
time that importing fastembed takes."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnxruntime import InferenceSession, SessionOptions
from tokenizers import Tokenizer

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
from toolscript.core.errors import ModelNotFound
from toolscript.core.retrieval.model import Matrix, ModelCard

MODEL_FILES = (
    "model.onnx",
    "onnx/model.onnx",
    "model_optimized.onnx",
    "model_quantized.onnx",
    "onnx/model_quantized.onnx",
)
# The default of most sentence models, for a tokenizer without a maximum length.
DEFAULT_LENGTH, MAX_LENGTH = 512, 8192

CLS, MEAN = "cls", "mean"


class FolderEngine:
    def __init__(self, folder: Path, file: str, *, pooling: str, threads: int | None, device: Device) -> None:
        options = SessionOptions()
        # Spinning threads take CPU time from the work that follows the model.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        if threads:
            options.intra_op_num_threads = options.inter_op_num_threads = threads
        self._session = InferenceSession(str(folder / file), options, providers=providers_for(device))
        self._inputs = {model_input.name for model_input in self._session.get_inputs()}
        self._tokenizer, self._pad_id = _tokenizer(folder)
        self._pooling = pooling

    def encode(self, texts: Sequence[str]) -> list[EncodedText]:
        encodings = [(text, self._tokenizer.encode(text)) for text in texts]
        return [EncodedText(text, len(encoded), encoded.ids, encoded.type_ids) for text, encoded in encodings]

    def embed_encoded(self, texts: Sequence[EncodedText]) -> Matrix:
        """Embed texts as one batch, padded to the longest of them."""
        shape = len(texts), max(text.tokens for text in texts)
        arrays = {
            "input_ids": np.full(shape, self._pad_id, np.int64),
            "attention_mask": np.zeros(shape, np.int64),
            "token_type_ids": np.zeros(shape, np.int64),
        }
        for row, text in enumerate(texts):
            arrays["input_ids"][row, : text.tokens] = text.ids
            arrays["attention_mask"][row, : text.tokens] = 1
            arrays["token_type_ids"][row, : text.tokens] = text.type_ids
        inputs = {name: array for name, array in arrays.items() if name in self._inputs}
        output = np.asarray(self._session.run(None, inputs)[0])
        return _pool(output, arrays["attention_mask"], self._pooling)

    def token_counter(self) -> TokenCounter:
        return TokenCounter(self._tokenizer)


def load_folder(folder: Path, threads: int | None, device: Device) -> Loaded:
    """Load a model, named after its folder: full paths differ between machines."""
    file = next((name for name in MODEL_FILES if (folder / name).is_file()), None)
    if file is None:
        raise ModelNotFound(
            f"{folder} holds no ONNX model", hint=f"expected one of {', '.join(MODEL_FILES)} in it"
        )
    pooling = _pooling(folder)
    engine = FolderEngine(folder, file, pooling=pooling, threads=threads, device=device)
    size = int(_read(folder / "config.json")["hidden_size"])
    card = ModelCard(folder.name, digest_of(folder / file), size, pooling, *prefixes_of(folder.name))
    return Loaded(engine, card, mixes_batches(folder / file))


def _pool(output: NDArray[np.float32], mask: NDArray[np.int64], pooling: str) -> Matrix:
    """Return a vector per text: that of its first token, or the mean without padding."""
    if output.ndim == 2:
        return output.astype(np.float32)
    if pooling == CLS:
        return output[:, 0].astype(np.float32)
    weights = mask[:, :, np.newaxis].astype(np.float32)
    return np.asarray((output * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1e-9), dtype=np.float32)


def _tokenizer(folder: Path) -> tuple[Tokenizer, int]:
    """Return the tokenizer, which truncates and does not pad, and the id of its padding."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    config = _read(folder / "tokenizer_config.json") if (folder / "tokenizer_config.json").is_file() else {}
    limits = [config.get(key) for key in ("model_max_length", "max_length")]
    usable = [int(limit) for limit in limits if isinstance(limit, int | float) and 0 < limit <= MAX_LENGTH]
    tokenizer.enable_truncation(max_length=min(usable, default=DEFAULT_LENGTH))
    token = str(config.get("pad_token") or "[PAD]")
    tokenizer.no_padding()
    return tokenizer, tokenizer.token_to_id(token) or 0


def _pooling(folder: Path) -> str:
    config = folder / "1_Pooling" / "config.json"
    if config.is_file():
        return CLS if _read(config).get("pooling_mode_cls_token") else MEAN
    return CLS if "bge-" in folder.name.lower() else MEAN


def _read(path: Path) -> Mapping[str, Any]:
    return dict(json.loads(path.read_text("utf-8")))
