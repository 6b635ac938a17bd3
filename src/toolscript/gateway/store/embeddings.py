"""Cache files of embeddings and text analyses, so that no tool is embedded or analysed twice.

`embeddings-<sha256 of the sorted names of the servers>.json`:
{"format": 1, "model": "<fingerprint>", "card": {...}, "tools": {"server__tool": {"hash", "vector"}}}
A vector is its float32 numbers, little-endian, in base64.
"""

import base64
import binascii
import hashlib
import json
import logging
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from toolscript.core.atomic_files import read_json, set_aside, write_json_atomically
from toolscript.core.item_text import ITEM_TEXT_VERSION
from toolscript.core.items import SEPARATOR
from toolscript.core.retrieval.model import IndexCard, Vector
from toolscript.core.retrieval.terms import WORDS_VERSION
from toolscript.gateway.index import Analysed

FORMAT = 1
MAX_SIBLINGS = 20
FINGERPRINT = re.compile(r"[0-9a-f]{12}")

# `server__tool` to the hash of the embedded text, and its vector.
Entries = Mapping[str, tuple[str, Vector]]

VERSION = [1, WORDS_VERSION, ITEM_TEXT_VERSION]

logger = logging.getLogger(__name__)


def server_list_hash(servers: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(sorted(servers), ensure_ascii=False).encode()).hexdigest()


class EmbeddingFile:
    def __init__(self, folder: Path, servers: Sequence[str], card: IndexCard) -> None:
        self._folder = folder
        self._path = folder / f"embeddings-{server_list_hash(servers)}.json"
        self._card = card
        self._in_file: Entries | None = None
        self._known: dict[str, Vector] = {}
        self._read: set[Path] = set()

    @property
    def path(self) -> Path:
        return self._path

    def recall(self, hashes: Sequence[str]) -> Mapping[str, Vector]:
        """Return vectors by the hash of their text, from this file, else from sibling files."""
        self._known |= dict(self._own().values())
        wanted = set(hashes)
        for sibling in [] if wanted <= self._known.keys() else self._siblings():
            self._read.add(sibling)
            self._known |= dict(self._readable(sibling).values())
            if wanted <= self._known.keys():
                break
        return {key: self._known[key] for key in wanted & self._known.keys()}

    def remember(self, tools: Entries, absent: Collection[str] = ()) -> None:
        """Write these tools and the entries of absent servers, if they changed. A write error is only logged."""
        own = self._own()
        entries = {name: entry for name, entry in own.items() if _server_of(name) in absent} | dict(tools)
        if self._path.exists() and _hashes(entries) == _hashes(own):
            return
        self._in_file = entries
        self._known |= dict(entries.values())
        try:
            write_json_atomically(self._path, self._whole(entries))
        except OSError as error:
            logger.warning(
                "the embeddings cannot be cached; the next start embeds again",
                extra={"file": str(self._path), "reason": str(error)},
            )

    def _whole(self, entries: Entries) -> dict[str, object]:
        tools = {name: {"hash": key, "vector": packed_vector(vector)} for name, (key, vector) in entries.items()}
        card = asdict(self._card.model)
        return {"format": FORMAT, "model": self._card.fingerprint, "card": card, "tools": tools}

    def _own(self) -> Entries:
        if self._in_file is None:
            self._in_file = self._read_own() if self._path.is_file() else {}
        return self._in_file

    def _read_own(self) -> Entries:
        try:
            return _entries(self._path, self._card)
        except OSError as error:
            logger.warning("the embeddings cannot be read", extra={"file": str(self._path), "reason": str(error)})
        except _Foreign as error:
            self._put_away(f"of-{error.model}", "made by another model")
        except ValueError as error:
            self._put_away("broken", str(error))
        return {}

    def _put_away(self, label: str, reason: str) -> None:
        logger.warning(
            "a file of embeddings was set aside", extra={"file": str(self._path), "label": label, "reason": reason}
        )
        try:
            set_aside(self._path, label)
        except OSError:
            logger.warning("... but cannot be moved", extra={"file": str(self._path)})

    def _siblings(self) -> list[Path]:
        """Return the newest unread siblings, also those set aside for their model: it may be ours again."""
        try:
            paths = [path for path in self._folder.glob("embeddings-*.json*") if path.suffix != ".broken"]
            newest = sorted(paths, key=lambda path: -path.stat().st_mtime)[:MAX_SIBLINGS]
            return [path for path in newest if path != self._path and path not in self._read]
        except OSError:
            return []

    def _readable(self, path: Path) -> Entries:
        try:
            return _entries(path, self._card)
        except (OSError, ValueError):
            return {}


def _server_of(name: str) -> str:
    """Return the server of `server__tool` or `prompt:server__name`."""
    return name.partition(SEPARATOR)[0].rpartition(":")[2]


def _hashes(entries: Entries) -> dict[str, str]:
    return {name: key for name, (key, _) in entries.items()}


class _Foreign(ValueError):
    def __init__(self, model: str) -> None:
        super().__init__(f"made by model {model}")
        # It becomes part of a file name.
        self.model = model if FINGERPRINT.fullmatch(model) else "unknown"


def _entries(path: Path, card: IndexCard) -> Entries:
    """Parse a file completely, or raise: one malformed entry makes the others suspect."""
    data = read_json(path)
    if not isinstance(data, dict) or data.get("format") != FORMAT or not isinstance(data.get("tools"), dict):
        raise ValueError("not a file of embeddings")
    if data.get("model") != card.fingerprint:
        raise _Foreign(str(data.get("model")))
    return {name: _entry(entry, card.model.dimensions) for name, entry in data["tools"].items()}


def _entry(entry: object, dimensions: int) -> tuple[str, Vector]:
    if not isinstance(entry, dict) or not isinstance(entry.get("hash"), str):
        raise ValueError("an entry without a hash")
    return entry["hash"], unpacked_vector(entry.get("vector"), dimensions)


def packed_vector(vector: Vector) -> str:
    return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode()


def unpacked_vector(text: object, dimensions: int) -> Vector:
    try:
        vector = np.frombuffer(base64.b64decode(str(text), validate=True), dtype="<f4").astype(np.float32)
    except binascii.Error as error:
        raise ValueError("a vector that is not base64") from error
    if len(vector) != dimensions or not abs(float(np.linalg.norm(vector.astype(np.float64))) - 1) < 1e-3:
        raise ValueError("a vector of the wrong size or length")
    return vector


class AnalysisFile:
    """Analyses by the fingerprint of each item. A missing or broken file, or another version, is ignored."""

    def __init__(self, folder: Path, servers: Sequence[str]) -> None:
        self._path = folder / f"words-{server_list_hash(servers)}.json"
        self._written: frozenset[str] = frozenset()

    def recall(self) -> dict[str, Analysed]:
        try:
            data = read_json(self._path)
            if data["version"] != VERSION:
                return {}
            return {key: unpacked_analysis(*parts) for key, parts in data["items"].items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            logger.warning(
                "the text analyses are computed again", extra={"file": str(self._path), "reason": str(error)}
            )
            return {}

    def remember(self, analysed: Mapping[str, Analysed]) -> None:
        """Write the analyses, once for the same items."""
        if self._written == analysed.keys():
            return
        self._written = frozenset(analysed)
        items = {key: packed_analysis(analysis) for key, analysis in analysed.items()}
        try:
            write_json_atomically(self._path, {"version": VERSION, "items": items})
        except OSError as error:
            logger.warning(
                "the text analyses cannot be cached", extra={"file": str(self._path), "reason": str(error)}
            )


def packed_analysis(analysed: Analysed) -> list[str]:
    terms, weights = analysed.terms.astype("<u4").tobytes(), analysed.weights.astype("<f4").tobytes()
    return [base64.b64encode(terms).decode(), base64.b64encode(weights).decode(), " ".join(analysed.words)]


def unpacked_analysis(terms: str, weights: str, words: str) -> Analysed:
    unpacked = Analysed(
        np.frombuffer(base64.b64decode(terms, validate=True), "<u4").astype(np.uint32),
        np.frombuffer(base64.b64decode(weights, validate=True), "<f4").astype(np.float32),
        tuple(words.split(" ")) if words else (),
    )
    if len(unpacked.terms) != len(unpacked.weights):
        raise ValueError("terms and weights do not match")
    return unpacked
