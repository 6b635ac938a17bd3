"""Items taken apart into words, so that a second start need not do it again: it is most of the work of one."""

import base64
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from toolscript.adapters.gateway_files.atomic import read_whole, write_whole
from toolscript.adapters.gateway_files.embeddings import server_list_hash
from toolscript.model.item_text import ITEM_TEXT_VERSION
from toolscript.model.words import WORDS_VERSION
from toolscript.search.local import Analysed

VERSION = [1, WORDS_VERSION, ITEM_TEXT_VERSION]

logger = logging.getLogger(__name__)


class AnalysisFile:
    """By the fingerprint of each item. Of another version, broken or absent: nothing is known."""

    def __init__(self, folder: Path, servers: Sequence[str]) -> None:
        self._path = folder / f"words-{server_list_hash(servers)}.json"
        self._written: frozenset[str] = frozenset()

    def recall(self) -> dict[str, Analysed]:
        try:
            data = read_whole(self._path)
            if data["version"] != VERSION:
                return {}
            return {key: _unpacked(*parts) for key, parts in data["items"].items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            logger.warning("words are taken apart again", extra={"file": str(self._path), "reason": str(error)})
            return {}

    def remember(self, analysed: Mapping[str, Analysed]) -> None:
        """Once for the same items."""
        if self._written == analysed.keys():
            return
        self._written = frozenset(analysed)
        items = {key: _packed(one) for key, one in analysed.items()}
        try:
            write_whole(self._path, {"version": VERSION, "items": items})
        except OSError as error:
            logger.warning("words cannot be kept", extra={"file": str(self._path), "reason": str(error)})


def _packed(one: Analysed) -> list[str]:
    terms, weights = one.terms.astype("<u4").tobytes(), one.weights.astype("<f4").tobytes()
    return [base64.b64encode(terms).decode(), base64.b64encode(weights).decode(), " ".join(one.words)]


def _unpacked(terms: str, weights: str, words: str) -> Analysed:
    unpacked = Analysed(
        np.frombuffer(base64.b64decode(terms, validate=True), "<u4").astype(np.uint32),
        np.frombuffer(base64.b64decode(weights, validate=True), "<f4").astype(np.float32),
        tuple(words.split(" ")) if words else (),
    )
    if len(unpacked.terms) != len(unpacked.weights):
        raise ValueError("terms and weights do not match")
    return unpacked
