"""The file of a `ToolIndex`: JSON with a checksum, replaced atomically.

{"format": "toolscript.ToolIndex", "version": 1, "sha256": "...",
 "content": {"fingerprint", "model", "scale", "tools": []}}
Each tool has its name, server and definition (null for a Python function), the fingerprint of its item with the
terms, and the hash of its embedded text with the vector (null without a model).
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from toolscript.core.atomic_files import read_json, write_json_atomically
from toolscript.core.embedding.items import vector_hash
from toolscript.core.embedding.scale import scale_from_json
from toolscript.core.errors import InvalidRequest, ModelMismatch, NotFound, SetupError
from toolscript.core.item_text import ITEM_TEXT_VERSION
from toolscript.core.items import JsonObject
from toolscript.core.retrieval.model import IndexCard, ModelCard, Vector
from toolscript.core.retrieval.terms import WORDS_VERSION
from toolscript.core.retrieval.verdict import CosineScale
from toolscript.gateway.index import Analysed
from toolscript.gateway.store.embeddings import (
    packed_analysis,
    packed_vector,
    unpacked_analysis,
    unpacked_vector,
)
from toolscript.tool_index.model import Entry

FORMAT = "toolscript.ToolIndex"
VERSION = 1
BUILD_ANEW = "build the index again with ToolIndex.from_tools, and save it"


@dataclass(frozen=True)
class SavedIndex:
    """What a file holds: analyses by fingerprint, vectors by hash, and definitions by server.

    `functions` are the names of the tools whose definition a file cannot hold; `scale` is that of the model.
    """

    analyses: Mapping[str, Analysed]
    vectors: Mapping[str, Vector]
    definitions: Mapping[str, Sequence[JsonObject]]
    functions: Sequence[str]
    scale: CosineScale | None = None

    def definitions_of_all(self, path: Path) -> Mapping[str, Sequence[JsonObject]]:
        if self.functions:
            raise InvalidRequest(
                f"{path} has Python functions, such as {self.functions[0]}, and a file cannot hold them",
                hint="give them, and all other tools, as ToolIndex.load(path, tools)",
            )
        return self.definitions


def write_index(
    path: Path,
    model: ModelCard | None,
    entries: Sequence[Entry[Any]],
    analyses: Mapping[str, Analysed],
    vectors: Mapping[str, Vector],
    scale: CosineScale | None = None,
) -> None:
    tools = [
        {
            "name": entry.name,
            "server": entry.server,
            "definition": entry.definition,
            "fingerprint": entry.item.fingerprint,
            "terms": packed_analysis(analyses[entry.item.fingerprint]),
            **_vector_to_json(entry, vectors),
        }
        for entry in entries
    ]
    card = None if model is None else asdict(model)
    measured = None if scale is None else asdict(scale)
    content = {"fingerprint": _fingerprint(model), "model": card, "scale": measured, "tools": tools}
    data = {"format": FORMAT, "version": VERSION, "sha256": _checksum(content), "content": content}
    try:
        write_json_atomically(path, data)
    except OSError as error:
        raise SetupError(
            f"{path} cannot be written: {error.strerror}", hint="save to a folder that you may write to"
        ) from error


def read_index(path: Path, model: ModelCard | None) -> SavedIndex:
    """Read a file; raise if it is missing, damaged, or of another model or version."""
    content = _content(path)
    try:
        _require_model(path, content, model)
        tools = content["tools"]
        definitions: dict[str, list[JsonObject]] = {}
        for tool in tools:
            if tool["definition"] is not None:
                definitions.setdefault(tool["server"], []).append(tool["definition"])
        return SavedIndex(
            analyses={tool["fingerprint"]: unpacked_analysis(*tool["terms"]) for tool in tools},
            vectors={} if model is None else _vectors_from_json(tools, model),
            definitions=definitions,
            functions=[tool["name"] for tool in tools if tool["definition"] is None],
            scale=scale_from_json(content["scale"]) if content.get("scale") else None,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(path) from error


def _content(path: Path) -> Any:
    try:
        data = read_json(path)
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}", hint="`save` an index there first") from None
    except OSError as error:
        raise SetupError(f"{path} cannot be read: {error.strerror}", hint=BUILD_ANEW) from error
    except ValueError as error:
        raise _damaged(path) from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise SetupError(f"{path} is no file of a ToolIndex", hint="give a file that `save` wrote")
    if data.get("version") != VERSION:
        raise SetupError(
            f"{path} has version {data.get('version')!r} of the format, and this program reads {VERSION}",
            hint=BUILD_ANEW,
        )
    if _checksum(data.get("content")) != data.get("sha256"):
        raise _damaged(path)
    return data["content"]


def _require_model(path: Path, content: Any, model: ModelCard | None) -> None:
    if content["fingerprint"] == _fingerprint(model):
        return
    saved = "no model" if content["model"] is None else f"the model {content['model']['name']}"
    given = "no model" if model is None else f"the model {model.name}"
    if saved != given:
        problem = f"{path} was built with {saved}, and is to be loaded with {given}"
        raise ModelMismatch(problem, hint=f"load it with the model it was built with, or {BUILD_ANEW}")
    raise ModelMismatch(
        f"{path} was built with another revision of {given}, or by another version of this program",
        hint=BUILD_ANEW,
    )


def _fingerprint(model: ModelCard | None) -> str:
    """Return the identity of model and analysis; without a model, that of the analysis alone."""
    return f"words-{WORDS_VERSION}-{ITEM_TEXT_VERSION}" if model is None else IndexCard(model).fingerprint


def _vector_to_json(entry: Entry[Any], vectors: Mapping[str, Vector]) -> dict[str, str | None]:
    key = vector_hash(entry.item)
    return {"hash": key, "vector": packed_vector(vectors[key]) if key in vectors else None}


def _vectors_from_json(tools: Sequence[Any], model: ModelCard) -> dict[str, Vector]:
    return {tool["hash"]: unpacked_vector(tool["vector"], model.dimensions) for tool in tools}


def _checksum(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _damaged(path: Path) -> SetupError:
    return SetupError(f"{path} is damaged", hint=BUILD_ANEW)
