"""`ToolIndex`: the gateway's search over tools that a program holds."""

import asyncio
import logging
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, overload

from rapidfuzz import process

from toolscript.core.embedding.items import ItemVectors, vector_hash
from toolscript.core.embedding.model_runtime import GAIN, INSTALL, is_installed
from toolscript.core.embedding.scale import scale_of
from toolscript.core.embedding.static_table import BUILTIN, StaticEmbedder
from toolscript.core.errors import ModelNotFound, NotFound
from toolscript.core.items import JsonObject
from toolscript.core.retrieval.model import ModelCard
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.retrieval.query import SearchType
from toolscript.core.retrieval.weights import DEFAULT_WEIGHTS
from toolscript.gateway.capabilities import default_capabilities
from toolscript.gateway.index import Analysed, LocalIndex, analyse
from toolscript.gateway.model import DEFAULT_LIMIT, DEFAULT_THRESHOLD, LocalAnswer, LocalQuery
from toolscript.gateway.search import LocalSearch
from toolscript.tool_index.background import BACKGROUND, require_process
from toolscript.tool_index.definitions import read_tools
from toolscript.tool_index.file import SavedIndex, read_index, write_index
from toolscript.tool_index.model import (
    Entry,
    Explanation,
    IndexAnswer,
    Tools,
    ToolT,
    answer_of,
    explanation_of,
)

DEFAULT_MODEL = "default"
MAX_SUGGESTED = 3
WITHOUT_MODEL = 'model="builtin" needs no download; or give the folder of an ONNX model, or None for words alone'

Model = str | Path | Embedder | None

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _State(Generic[ToolT]):
    """The tools, and a search over exactly these: a change makes another state."""

    entries: Mapping[str, Entry[ToolT]]
    search: LocalSearch
    analyses: Mapping[str, Analysed]


class ToolIndex(Generic[ToolT]):
    """Finds tools by requests in plain words, with the ranking of the gateway.

    Tools are Python functions, `mcp.types.Tool`, and definitions of OpenAI, Anthropic or MCP, in any mixture. Any
    number of threads may search at once, also while tools are added or removed: a search uses the tools that were
    there when it began.
    """

    def __init__(self, embedder: Embedder | None = None, saved: SavedIndex | None = None) -> None:
        """Make an empty index; `from_tools` and `load` fill one."""
        self._embedder = embedder
        self._vectors = None if embedder is None else ItemVectors(embedder, None, saved.vectors if saved else None)
        self._scale = saved.scale if saved else None
        self._process = os.getpid()
        self._changing = threading.Lock()
        self._state: _State[ToolT] = self._state_of([], saved.analyses if saved else {})

    # Two signatures, because a mapping is also an iterable, of its keys.
    @classmethod
    @overload
    def from_tools(
        cls, tools: Mapping[str, Iterable[ToolT]], *, model: Model = DEFAULT_MODEL
    ) -> "ToolIndex[ToolT]": ...

    @classmethod
    @overload
    def from_tools(cls, tools: Iterable[ToolT], *, model: Model = DEFAULT_MODEL) -> "ToolIndex[ToolT]": ...

    @classmethod
    def from_tools(cls, tools: Tools[Any], *, model: Model = DEFAULT_MODEL) -> "ToolIndex[Any]":
        """Index tools, given in a list, or as `{server: list}` where several servers have tools of the same name.

        `model` is the name of an embedding model, the folder of one in ONNX format, or an embedder; the default is
        that of the gateway. None: no dense retrieval, words alone.
        """
        index: ToolIndex[Any] = cls(_open_model(model))
        index.add(tools)
        return index

    @classmethod
    @overload
    def load(
        cls, path: str | Path, tools: None = None, *, model: Model = DEFAULT_MODEL
    ) -> "ToolIndex[JsonObject]": ...

    @classmethod
    @overload
    def load(
        cls, path: str | Path, tools: Mapping[str, Iterable[ToolT]], *, model: Model = DEFAULT_MODEL
    ) -> "ToolIndex[ToolT]": ...

    @classmethod
    @overload
    def load(
        cls, path: str | Path, tools: Iterable[ToolT], *, model: Model = DEFAULT_MODEL
    ) -> "ToolIndex[ToolT]": ...

    @classmethod
    def load(
        cls, path: str | Path, tools: Tools[Any] | None = None, *, model: Model = DEFAULT_MODEL
    ) -> "ToolIndex[Any]":
        """Load what `save` wrote, with the model that it was built with.

        With `tools`, these are the tools of the index, and only what is new or has changed is embedded. Without,
        they are the definitions in the file, as JSON; Python functions have to be given.
        """
        embedder = _open_model(model)
        saved = read_index(Path(path), None if embedder is None else embedder.model)
        index: ToolIndex[Any] = cls(embedder, saved)
        index.add(saved.definitions_of_all(Path(path)) if tools is None else tools)
        return index

    def __len__(self) -> int:
        return len(self._state.entries)

    def __contains__(self, name: object) -> bool:
        return name in self._state.entries

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools, in the order in which they were added."""
        return tuple(self._state.entries)

    @property
    def model(self) -> ModelCard | None:
        return None if self._embedder is None else self._embedder.model

    def search(
        self,
        query: str,
        *,
        limit: int = DEFAULT_LIMIT,
        threshold: float = DEFAULT_THRESHOLD,
        search_type: SearchType = SearchType.HYBRID,
    ) -> IndexAnswer[ToolT]:
        """Return the tools whose confidence reaches the threshold, best first."""
        wanted = LocalQuery(query, limit, threshold, search_type=SearchType(search_type))
        require_process(self._process)
        state = self._state
        prepared = state.search.prepare(wanted)
        # Only the embedder needs the background loop: searches of several threads do not wait for each other.
        embedded = BACKGROUND.run(state.search.embed(prepared))
        return answer_of(state.search.answer(prepared, embedded), state.entries)

    async def asearch(
        self,
        query: str,
        *,
        limit: int = DEFAULT_LIMIT,
        threshold: float = DEFAULT_THRESHOLD,
        search_type: SearchType = SearchType.HYBRID,
    ) -> IndexAnswer[ToolT]:
        """Search like `search`, without blocking the event loop."""
        wanted = LocalQuery(query, limit, threshold, search_type=SearchType(search_type))
        require_process(self._process)
        state = self._state
        answer: LocalAnswer = await asyncio.wrap_future(BACKGROUND.submit(state.search.search(wanted)))
        return answer_of(answer, state.entries)

    def explain(
        self, query: str, name: str, *, limit: int = DEFAULT_LIMIT, threshold: float = DEFAULT_THRESHOLD
    ) -> Explanation[ToolT]:
        """Return how a tool ranks for a query: its place, what became of it, and why."""
        wanted = LocalQuery(query, limit, threshold)
        require_process(self._process)
        state = self._state
        _require_known([name], state.entries)
        placement = BACKGROUND.run(state.search.explain(wanted, [*state.entries].index(name)))
        return explanation_of(placement, state.entries, limit, threshold)

    def add(self, tools: Tools[ToolT]) -> None:
        """Add tools, all of them or none. Only their own texts are embedded."""
        with self._changing:
            entries = self._state.entries
            new = read_tools(tools, entries)
            self._state = self._state_of([*entries.values(), *new], self._state.analyses)

    def remove(self, *names: str) -> None:
        """Remove the tools with these names, all of them or none."""
        with self._changing:
            entries = self._state.entries
            _require_known(names, entries)
            kept = [entry for name, entry in entries.items() if name not in names]
            self._state = self._state_of(kept, self._state.analyses)

    def save(self, path: str | Path) -> None:
        """Write the index to a file, which is replaced atomically; a program that is killed leaves the old one."""
        with self._changing:
            vectors = {} if self._vectors is None else self._vectors.known
            entries, analyses = [*self._state.entries.values()], self._state.analyses
            write_index(Path(path), self.model, entries, analyses, vectors, self._scale)

    def _state_of(self, entries: Sequence[Entry[ToolT]], known: Mapping[str, Analysed]) -> _State[ToolT]:
        """Analyse and embed what is new, and keep the rest; on an error nothing has changed."""
        items = [entry.item for entry in entries]
        matrix = None
        if self._vectors is not None and items:
            require_process(self._process)
            hashes = [vector_hash(item) for item in items]
            if missing := self._vectors.missing(items, hashes):
                BACKGROUND.run(self._vectors.embed(missing))
            if self._scale is None and self._embedder is not None:
                self._scale = BACKGROUND.run(scale_of(self._embedder, None))
            self._vectors.keep(items, hashes)
            matrix = self._vectors.matrix(hashes)
        analysed = {item.fingerprint: known.get(item.fingerprint) or analyse(item) for item in items}
        search = LocalSearch(default_capabilities(), DEFAULT_WEIGHTS)
        search.embedder, search.scale, search.model_note = self._embedder, self._scale, ""
        search.index = LocalIndex(items, [analysed[item.fingerprint] for item in items], matrix).warm()
        return _State({entry.name: entry for entry in entries}, search, analysed)


def _open_model(model: Model) -> Embedder | None:
    if model is None or not isinstance(model, str | Path):
        return model
    # Imported here: an index that searches by words alone needs none of it.
    from toolscript.gateway.runtime import load_embedder, require_model
    from toolscript.gateway.settings import keep_libraries_quiet, load_gateway_settings

    keep_libraries_quiet()
    path = str(model.expanduser().absolute()) if isinstance(model, Path) else model
    settings = load_gateway_settings({"search_model": None if path == DEFAULT_MODEL else path})
    try:
        require_model(settings)
        if path == DEFAULT_MODEL and settings.search_model != BUILTIN and not is_installed():
            logger.warning("searching with the built-in model: %s %s", INSTALL, GAIN)
            return StaticEmbedder()
        return load_embedder(settings)
    except ModelNotFound as error:
        raise type(error)(error.message, hint=WITHOUT_MODEL, details=error.details) from error


def _require_known(names: Iterable[str], known: Mapping[str, object]) -> None:
    for name in names:
        if name not in known:
            nearest = [str(match[0]) for match in process.extract(name, [*known], limit=MAX_SUGGESTED)]
            hint = f"did you mean {', '.join(nearest)}?" if nearest else "the index has no tools"
            raise NotFound(
                f"there is no tool {name[:200]!r} in the index", hint=hint, details={"nearest": nearest}
            )
