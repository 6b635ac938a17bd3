"""An engine with scripted answers, and a small dataset."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from toolscript.core.items import Item, ItemKind
from toolscript_eval.dataset import Dataset, DatasetQuery, EngineAnswer


def tool(key: str) -> Item:
    return Item(key, ItemKind.TOOL, "server", key, f"Does {key}")


@dataclass
class NamingEngine:
    """Returns the items that a query names, in its order, with high confidence; with low confidence if none.

    For the queries in `wrong` it puts another item first.
    """

    name: str = "naming"
    wrong: frozenset[str] = frozenset()
    sure: float = 0.9
    unsure: float = 0.2
    tells: bool = True
    loaded: list[frozenset[str]] = field(default_factory=list)
    asked: list[tuple[str, frozenset[str]]] = field(default_factory=list)

    async def load(self, items: Sequence[Item]) -> None:
        self.loaded.append(frozenset(item.key for item in items))

    async def answer(self, query: str) -> EngineAnswer:
        there = self.loaded[-1]
        self.asked.append((query, there))
        named = [word for word in query.split() if word in there]
        keys = (["decoy"] if query in self.wrong else []) + named
        if not self.tells:
            return EngineAnswer(tuple(keys))
        confidence = self.sure if named else self.unsure
        stages: Mapping[str, float] = {"total": float(len(self.asked))}
        return EngineAnswer(tuple(keys or ["decoy"]), confidence, confidence > 0.5, stages, tokens=len(keys))


ITEMS = [tool(f"t{number}") for number in range(12)] + [tool("decoy")]


def query(id_: str, *keys: str) -> DatasetQuery:
    text = " ".join(keys) or f"nothing {id_}"
    return DatasetQuery(id_, text, dict.fromkeys(keys, 1), tuple(frozenset({key}) for key in keys))


QUERIES = [
    *(query(f"q{number}", f"t{number}") for number in range(12)),
    query("both", "t0", "t1"),
    query("n1"),
    query("n2"),
]
JUDGED = Dataset("small", ITEMS, QUERIES)
