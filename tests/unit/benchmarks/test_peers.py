"""Peers run as programs of their own: tools and queries in, ranked ids out, and every failure is named."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks.peers import PEERS, SCRIPTS, Peer, named_peers, peers_result, ranker_of, without_times
from tests.unit.eval.engines import ITEMS, JUDGED, QUERIES, tool
from tests.unit.eval.quality_reports import SPENT, report
from toolscript.core.errors import InvalidRequest, SetupError
from toolscript.testing import HashEmbedder
from toolscript_eval.dataset import Dataset, DatasetQuery, SystemRole
from toolscript_eval.judging import ranker_reports
from toolscript_eval.report import report_from_json

pytestmark = pytest.mark.slow

# Ranks the tools that a query names; the tools have the names that an agent would see.
NAMES_THEM = """
import json, sys
rows = [json.loads(line) for line in sys.stdin]
tools = {row["tool"]["name"]: row["tool"]["id"] for row in rows if "tool" in row}
for query in (row["query"] for row in rows if "query" in row):
    ids = [tools["server__" + word] for word in query["text"].split() if "server__" + word in tools]
    print(json.dumps({"id": query["id"], "ids": ids[: int(sys.argv[1])]}))
"""
EMBEDS = """
import json, sys, urllib.request
rows = [json.loads(line) for line in sys.stdin]
tools = [row["tool"] for row in rows if "tool" in row]
def vectors(texts):
    request = urllib.request.Request(sys.argv[2], json.dumps({"model": "any", "input": texts}).encode())
    return [row["embedding"] for row in json.load(urllib.request.urlopen(request))["data"]]
of_tools = vectors([tool["description"] for tool in tools])
for query in (row["query"] for row in rows if "query" in row):
    (own,) = vectors(query["text"])
    scores = [sum(a * b for a, b in zip(own, other)) for other in of_tools]
    ids = [tool["id"] for _, tool in sorted(zip(scores, tools), key=lambda pair: -pair[0])]
    print(json.dumps({"id": query["id"], "ids": ids}))
"""


def peer(tmp_path: Path, program: str, *, needs_model: bool = False) -> Peer:
    """Return a peer whose environment is there already: the Python of this test."""
    script = tmp_path / "program.py"
    script.write_text(program, "utf-8")
    environment = tmp_path / f"mine-1-{sys.version_info.major}.{sys.version_info.minor}"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin" / "python").symlink_to(sys.executable)
    (environment / "complete").touch()
    return Peer("mine", "mine", "1", str(script), (), "as it is", needs_model=needs_model)


async def test_a_peer_gets_tools_and_queries_and_its_ids_are_measured(tmp_path: Path) -> None:
    rank = await ranker_of(peer(tmp_path, NAMES_THEM), JUDGED, HashEmbedder(), tmp_path)
    assert list(rank("t0 t1", 10)) == ["t0", "t1"]
    assert list(rank("t0 t1", 1)) == ["t0"]
    (measured,) = ranker_reports(
        {"mine": rank}, JUDGED, seed=0, role=SystemRole.PEER, notes={"mine": "mine 1, as it is"}
    )
    assert (measured.role, measured.note) == (SystemRole.PEER, "mine 1, as it is")
    assert measured.measures["ndcg@10"].value == 1.0
    assert set(measured.by_query) == {query.id for query in QUERIES if query.answerable}


async def test_a_peer_that_needs_a_model_embeds_with_the_gateways(tmp_path: Path) -> None:
    embedder = HashEmbedder()
    dataset = Dataset("small", [*ITEMS, tool("whales")], [DatasetQuery("1", "Does whales", {"whales": 1})])
    rank = await ranker_of(peer(tmp_path, EMBEDS, needs_model=True), dataset, embedder, tmp_path)
    assert rank("Does whales", 10)[0] == "whales"
    assert embedder.texts_embedded == len(dataset.items) + 1


FAILS = "import sys; sys.stdin.read(); raise ValueError('no such tool')"
ENDS_AT_ONCE = "raise ValueError('cannot start')"
LEAVES_OUT = NAMES_THEM.replace("for query in (", "for query in list(").replace("in row):\n", "in row)[:5]:\n")


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (FAILS, "mine answered 0 of 13 queries.*no such tool"),
        (ENDS_AT_ONCE, "mine answered 0 of 13 queries.*cannot start"),
        (LEAVES_OUT, "mine answered 5 of 13 queries"),
    ],
)
async def test_a_peer_that_fails_or_leaves_queries_out_is_an_error(
    tmp_path: Path, program: str, message: str
) -> None:
    with pytest.raises(SetupError, match=f"(?s){message}"):
        await ranker_of(peer(tmp_path, program), JUDGED, HashEmbedder(), tmp_path)


def test_the_text_has_the_difference_to_each_peer_and_the_report_can_be_read_again() -> None:
    original = report("azure", ndcg=0.9, peers={"other": 0.7})
    result = peers_result(original)
    assert "other               +0.2000  (+0.2000 to +0.2000)   other 1.0" in result.text
    again = report_from_json(json.loads(json.dumps(result.data)))
    assert [(system.system, system.role, system.note) for system in again.systems][-1] == (
        "other",
        SystemRole.PEER,
        "other 1.0",
    )


def test_milliseconds_are_left_out_because_peers_are_not_timed() -> None:
    original = report("azure", peers={"other": 0.7})
    kept = without_times(original).systems[0].measures
    assert set(original.systems[0].measures) - set(kept) == set(SPENT)


def test_an_unknown_peer_is_refused_with_the_names_of_the_known_ones() -> None:
    assert named_peers(()) == PEERS
    assert [known.name for known in named_peers(["ratel-ai", "ratel-ai"])] == ["ratel-ai"]
    with pytest.raises(InvalidRequest, match="no peer 'nobody'") as refused:
        named_peers(["nobody"])
    assert "fastmcp" in (refused.value.hint or "")


def test_every_peer_has_its_program_and_a_version() -> None:
    assert all((SCRIPTS / known.script).is_file() and known.version for known in PEERS)


@pytest.mark.nightly
@pytest.mark.parametrize("name", [known.name for known in PEERS])
async def test_a_real_peer_is_installed_and_finds_a_tool_by_its_words(name: str, tmp_path: Path) -> None:
    (known,) = named_peers([name])
    items = [*ITEMS, tool("whales"), tool("weather")]
    dataset = Dataset("small", items, [DatasetQuery("1", "what does the weather do", {"weather": 1})])
    rank = await ranker_of(known, dataset, HashEmbedder(), tmp_path)
    assert rank("what does the weather do", 10)[0] == "weather"
    assert len(rank("what does the weather do", 3)) <= 3
