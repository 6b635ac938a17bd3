"""The vectors of the model that the table imitates: of whole texts, and of each token of its vocabulary."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from onnxruntime import InferenceSession, SessionOptions
from tokenizers import Tokenizer

Matrix = NDArray[np.float32]

MAX_TOKENS = 128
BATCH = 32
CHUNK = 4_096


class Teacher:
    """The fp32 model on one thread: with more, sums would be taken in another order."""

    def __init__(self, folder: Path) -> None:
        options = SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
        self._inputs = {node.name for node in self._session.get_inputs()}
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(MAX_TOKENS)
        self.digest = hashlib.sha256((folder / "model.onnx").read_bytes()).hexdigest()

    def tokens_of(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of each text, without the special ones; a text without tokens is an unknown word."""
        encoded = self.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        unknown = self.tokenizer.token_to_id("[UNK]") or 0
        return [encoding.ids[: MAX_TOKENS - 2] or [unknown] for encoding in encoded]

    def sentence_vectors(self, texts: Sequence[str], cache: Path | None) -> Matrix:
        """Embed all texts, in chunks that a build which was interrupted does not repeat."""
        chunks = [texts[start : start + CHUNK] for start in range(0, len(texts), CHUNK)]
        return np.concatenate([self._cached(chunk, cache) for chunk in chunks])

    def token_vectors(self) -> Matrix:
        """Return the hidden state of each token between [CLS] and [SEP]."""
        start, end = (self.tokenizer.token_to_id(name) for name in ("[CLS]", "[SEP]"))
        count = self.tokenizer.get_vocab_size()
        batches = [
            self._hidden(np.array([[start, token, end] for token in range(first, min(first + BATCH, count))]))[
                :, 1
            ]
            for first in range(0, count, BATCH)
        ]
        return np.concatenate(batches)

    def _cached(self, texts: Sequence[str], cache: Path | None) -> Matrix:
        key = hashlib.sha256("\n".join([self.digest, *texts]).encode()).hexdigest()[:24]
        file = cache / f"{key}.npy" if cache else None
        if file is not None and file.is_file():
            return np.asarray(np.load(file))
        vectors = self._embed(texts)
        if file is not None:
            unfinished = file.with_name(f"{file.name}.{os.getpid()}.unfinished.npy")
            np.save(unfinished, vectors)
            unfinished.replace(file)
        return vectors

    def _embed(self, texts: Sequence[str]) -> Matrix:
        """Embed texts of one length together, so that no batch is padded."""
        encoded = [encoding.ids for encoding in self.tokenizer.encode_batch(list(texts))]
        vectors = np.empty((len(texts), 384), np.float32)
        for rows in _batches([len(ids) for ids in encoded]):
            pooled = self._hidden(np.array([encoded[row] for row in rows])).mean(axis=1)
            vectors[rows] = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
        return vectors

    def _hidden(self, ids: NDArray[np.int64]) -> Matrix:
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        used = {name: array for name, array in inputs.items() if name in self._inputs}
        return np.asarray(self._session.run(None, used)[0], np.float32)


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    by_length: dict[int, list[int]] = {}
    for row, length in enumerate(lengths):
        by_length.setdefault(length, []).append(row)
    for _, rows in sorted(by_length.items()):
        for start in range(0, len(rows), BATCH):
            yield rows[start : start + BATCH]
