"""Every search variant runs over a dataset of documents, and the results are compared."""

from collections.abc import Mapping, Sequence

import pytest

from toolscript.core.errors import InvalidRequest
from toolscript.core.items import Item, ItemKind
from toolscript_eval.dataset import Dataset, DatasetQuery, SystemRole
from toolscript_eval.judging import OURS, WAYS, differences_text, judge_documents


def document(key: str) -> Item:
    return Item(key, ItemKind.RESOURCE, server="", name=f"title of {key}", description=f"text of {key}")


JUDGED = Dataset(
    "made",
    [document(key) for key in ("a", "b", "c")],
    [DatasetQuery("1", "first", {"a": 1}), DatasetQuery("2", "second", {"b": 1}), DatasetQuery("3", "nothing")],
    documents=True,
)


class Scripted:
    """Returns the relevant document first for our ranking, and last for all other variants."""

    def __init__(self) -> None:
        self.put_: list[Mapping[str, object]] = []
        self.asked: list[tuple[str, Mapping[str, str]]] = []

    async def put(self, documents: Sequence[Mapping[str, object]]) -> None:
        self.put_ += documents

    async def search(self, query: str, top_k: int, way: Mapping[str, str]) -> Sequence[str]:
        assert top_k == 10
        self.asked.append((query, way))
        right = "a" if query == "first" else "b"
        wrong = [key for key in ("a", "b", "c") if key != right]
        return [right, *wrong] if way == WAYS[OURS] else [*wrong, right]


async def test_every_answerable_query_runs_in_every_variant() -> None:
    api = Scripted()
    report = await judge_documents(api, JUDGED, model="m")
    assert [document["id"] for document in api.put_] == ["a", "b", "c"]
    assert api.put_[0] == {"id": "a", "title": "title of a", "text": "text of a"}
    assert api.asked == [(text, way) for text in ("first", "second") for way in WAYS.values()]
    assert [system.system for system in report.systems] == list(WAYS)
    assert [system.role for system in report.systems] == [SystemRole.ENGINE, *[SystemRole.BASELINE] * 4]
    ours, *variants = (system.measures for system in report.systems)
    assert (ours["ndcg@10"].value, ours["mrr"].value) == (1.0, 1.0)
    assert [other["ndcg@10"].value for other in variants] == pytest.approx([0.5] * 4)
    assert (report.queries, report.items) == (2, 3)


async def test_our_ranking_is_compared_with_each_other_variant() -> None:
    text = differences_text(await judge_documents(Scripted(), JUDGED, model="m"))
    assert [line.split("  ")[0] for line in text.splitlines()[1:]] == list(WAYS)[1:]
    assert text.count("+0.5000  (+0.5000 to +0.5000)") == 4


async def test_a_set_without_answers_is_refused() -> None:
    nothing = Dataset("made", JUDGED.items, [DatasetQuery("3", "nothing")])
    with pytest.raises(InvalidRequest, match="none of these queries"):
        await judge_documents(Scripted(), nothing, model="m")
