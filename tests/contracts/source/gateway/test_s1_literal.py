"""Literal mode: the confidence is the weighted sum of two scores, and decides threshold and order."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.source.gateway.tools import TOOLS
from tests.e2e.gateway.caches import embeddings_of, vector_of
from tests.e2e.gateway.machines import Gateway, Machine
from tests.e2e.gateway.surfaces import mcp_over_http
from toolscript.core.embedding.embedder import LocalEmbedder

PLAIN, TYPO, GIT = "find files containing specific text", "read_fil", "commit my changes to git"
READING = "read file contents"
QUERIES = (PLAIN, TYPO, GIT, READING, "what will the weather be like")
READ = "desktop-commander__read_file"

Result = dict[str, Any]


def literally(gateway: Gateway, query: str, **more: object) -> list[Result]:
    request = {"search_type": "semantic", "explain": 1, "threshold": 0, "limit": 100, **more}
    answer = gateway.search(query, **request)
    assert answer["semantic"] is True
    return list(answer["results"])


def fuzzy(result: Result) -> float:
    parts = result["parts"]
    return float(max(parts["words"], parts["fuzzy"], parts["boost"]))


def weighed(result: Result, alpha: float) -> Any:
    return pytest.approx(alpha * result["parts"]["semantic"] + (1 - alpha) * fuzzy(result), abs=2e-4)


@pytest.mark.states("S1-004", "S1-127")
@pytest.mark.parametrize("query", QUERIES)
def test_a_confidence_is_0_7_dense_plus_0_3_fuzzy(gateway: Gateway, query: str) -> None:
    results = literally(gateway, query)
    assert len(results) == len(TOOLS)
    assert [result["confidence"] for result in results] == [weighed(result, 0.7) for result in results]
    assert len({result["parts"]["semantic"] for result in results}) > 5


@pytest.mark.states("S1-009", "S1-127")
@pytest.mark.parametrize("query", QUERIES)
def test_the_order_goes_by_that_number_and_then_by_name(gateway: Gateway, query: str) -> None:
    order = [(-item["confidence"], item["toolId"]) for item in literally(gateway, query)]
    assert order == sorted(order)


@pytest.mark.states("S1-004", "S1-127")
async def test_the_semantic_score_is_the_cosine_with_the_kept_vector(
    person: Machine, gateway: Gateway, weights: Path
) -> None:
    requests = (await LocalEmbedder(str(weights)).embed_query(PLAIN)).astype(float)
    kept = embeddings_of(person)
    output = {item["toolId"]: item["parts"]["semantic"] for item in literally(gateway, PLAIN)}
    expected = {name: max(0.0, float(requests @ vector_of(kept, name))) for name in output}
    assert output == pytest.approx(expected, abs=2e-3)
    assert max(output.values()) > 0.3


@pytest.mark.states("S1-004")
def test_the_fuzzy_score_is_1_with_every_word_and_0_with_none(gateway: Gateway) -> None:
    scores = {item["toolId"]: fuzzy(item) for item in literally(gateway, "weather forecast")}
    assert scores["otherserver__get_forecast"] == 1.0
    assert scores["filesystem__read"] == scores["github__create_issue"] == 0.0


@pytest.mark.states("S1-124", "S1-125")
def test_an_alpha_in_the_environment_is_the_dense_weight(searched: Machine) -> None:
    output = searched.also(TOOLSCRIPT_SEARCH_ALPHA="0.8", TOOLSCRIPT_SEARCH_TYPE="semantic")
    for query in (PLAIN, TYPO):
        requests = ("search", query, "--explain", "--threshold", "0", "--limit", "100")
        results = output.json(*requests)["results"]
        assert [item["confidence"] for item in results] == [weighed(item, 0.8) for item in results]
        default = searched.json(*requests, "--search-type", "semantic")["results"]
        assert {item["toolId"]: item["confidence"] for item in default} != {
            item["toolId"]: item["confidence"] for item in results
        }


@pytest.mark.states("S1-128", "S1-077", "S1-119")
@pytest.mark.parametrize("threshold", [0.35, 0.5])
def test_the_threshold_cuts_off_sums_below_it(gateway: Gateway, threshold: float) -> None:
    every = literally(gateway, READING)
    output = {} if threshold == 0.35 else {"threshold": threshold}
    answer = gateway.search(READING, search_type="semantic", limit=100, **output)
    above = [item["toolId"] for item in every if item["confidence"] >= threshold]
    assert [item["toolId"] for item in answer["results"]] == above
    assert (answer["totalResults"], answer["threshold"]) == (len(above), threshold)
    assert 0 < len(above) < len(every)


@pytest.mark.states("S1-010", "S1-011", "S1-012", "S1-067")
def test_a_misspelt_name_is_first_by_its_spelling_and_less_sure_than_the_exact_one(gateway: Gateway) -> None:
    typo, exact = (literally(gateway, query) for query in (TYPO, "desktop-commander__read_file"))
    assert {typo[0]["toolName"], exact[0]["toolId"]} == {"read_file", READ}
    assert "Fuzzy match of the name" in typo[0]["reason"]
    assert 0.85 < fuzzy(typo[0]) < fuzzy(exact[0]) == 1.0


@pytest.mark.states("S1-013", "S1-014", "S1-015", "S1-069")
def test_a_shell_is_lifted_for_what_it_can_do(gateway: Gateway) -> None:
    [shell] = (item for item in literally(gateway, GIT) if item["serverName"] == "shell")
    assert shell["reason"] == "Capability inference (shell → git operations)"
    parts = shell["parts"]
    assert parts["boost"] == 0.62 > max(parts["words"], parts["fuzzy"])
    assert shell["confidence"] == pytest.approx(0.7 * parts["semantic"] + 0.3 * 0.62, abs=2e-4)


@pytest.mark.states("S1-127", "S1-123")
def test_the_setting_is_the_default_and_a_flag_beats_it(person: Machine, gateway: Gateway) -> None:
    default, literal = gateway.search(READING), gateway.search(READING, search_type="semantic")
    assert default["results"] != literal["results"]
    output = person.also(TOOLSCRIPT_SEARCH_TYPE="semantic")
    assert output.json("search", READING)["results"] == literal["results"]
    assert person.json("search", READING, "--search-type", "semantic")["results"] == literal["results"]
    assert output.json("search", READING, "--search-type", "hybrid")["results"] == default["results"]
    assert gateway.search(READING, search_type="hybrid")["results"] == default["results"]


@pytest.mark.states("S1-127")
async def test_a_gateway_with_the_setting_answers_so_from_its_first_search_on(
    spare: Machine, gateway: Gateway
) -> None:
    """The model takes longer to load than the cached tools: the first search waits for it."""
    with spare.also(TOOLSCRIPT_SEARCH_TYPE="semantic").gateway() as literal:
        first = literal.search(PLAIN, explain=1)
        async with mcp_over_http(literal) as agent:
            [output] = await agent.search(PLAIN)
    assert first["semantic"] is True
    assert [(item.tool, item.confidence) for item in output.found] == [
        (item["toolId"], round(item["confidence"], 2)) for item in first["results"]
    ]
    assert first["results"] == gateway.search(PLAIN, explain=1, search_type="semantic")["results"]


@pytest.mark.states("S1-032", "S1-034")
def test_without_a_model_the_fuzzy_score_is_the_confidence_and_a_warning_says_so(searched: Machine) -> None:
    offline = searched.without("TOOLSCRIPT_SEARCH_MODEL").also(TOOLSCRIPT_SEARCH_TYPE="semantic")
    answer = offline.json("search", READING, "--explain")
    assert (answer["semantic"], answer["results"][0]["toolId"]) == (False, READ)
    assert "keyword search only" in answer["hint"]
    assert [result["confidence"] for result in answer["results"]] == [
        fuzzy(result) for result in answer["results"]
    ]


def test_keyword_is_the_fuzzy_score_alone_without_a_warning(gateway: Gateway) -> None:
    answer = gateway.search(READING, search_type="keyword", explain=1)
    assert (answer["semantic"], answer["results"][0]["toolId"], answer.get("hint")) == (False, READ, None)
    assert [result["confidence"] for result in answer["results"]] == [
        fuzzy(result) for result in answer["results"]
    ]


def test_a_line_of_many_may_set_its_search_type(person: Machine, gateway: Gateway) -> None:
    line = json.dumps({"query": READING, "search_type": "semantic"})
    output = json.loads(person.run("search", "--json", standard_input=line + "\n").stdout)
    assert output["results"] == gateway.search(READING, search_type="semantic")["results"]


def test_an_unknown_search_type_is_refused(person: Machine, gateway: Gateway) -> None:
    answer = gateway.ask("/search?q=x&search_type=literal")
    assert (answer.status_code, answer.json()["error"]["details"]["field"]) == (422, "search_type")
    person.run("search", "x", "--search-type", "literal", code=2)
    done = person.also(TOOLSCRIPT_SEARCH_TYPE="literal").run("search", "x", code=2)
    assert "TOOLSCRIPT_SEARCH_TYPE cannot be used" in done.stderr
