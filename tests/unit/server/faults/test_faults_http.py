"""Every row of the table in core/retrieval/deadline.py over HTTP: real engines, and every way they can fail."""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from tests.support.faults import Fault
from tests.unit.server.faults.builders import DEADLINE_SECONDS, FOUND, NOTHING, TRIES, Answer, Faulty

SILENT = (Fault.HANGING, Fault.HALF_THEN_SILENT)
LASTING = (Fault.REFUSED, Fault.WRONG, Fault.HALF_THEN_CUT, *SILENT, Fault.SLOW)
# Delay of a slow response: longer than the request's deadline, shorter than that of any part.
TOO_SLOW, SLOW_ENOUGH = 2 * DEADLINE_SECONDS, DEADLINE_SECONDS / 30

EMBEDDING, SKILLS, ITEMS, QDRANT, POSTGRESQL = "embedding", "skills", "items", "qdrant", "postgresql"


@dataclass(frozen=True)
class Row:
    """Parts that a degraded answer must name, by strategy: direct or by skills."""

    direct: list[str]
    by_skills: list[str]

    def parts(self, strategy: str) -> list[str]:
        return self.direct if strategy == "direct" else self.by_skills


ROWS: Mapping[str, Row] = {
    EMBEDDING: Row(["embedding"], ["embedding"]),
    SKILLS: Row([], ["skills"]),
    # Skills are also matched by sparse search of their items.
    ITEMS: Row([NOTHING], [NOTHING]),
    QDRANT: Row([NOTHING], [NOTHING]),
    POSTGRESQL: Row(["catalog", "schemas"], ["catalog", "schemas"]),
}


ROUTING_FAILS = {"direct": [], "hierarchical": [NOTHING], "hybrid": ["index"]}


async def fail(faulty: Faulty, engine: str, fault: Fault, delay: float = TOO_SLOW) -> None:
    match engine:
        case "embedding":
            await faulty.embedding.fail(fault, delay=delay)
        case "skills":
            await faulty.calls.fail(fault, naming="__skills__", delay=delay)
        case "items":
            await faulty.calls.fail(fault, naming="__", but_not="__skills__", delay=delay)
        case "qdrant":
            await faulty.qdrant.fail(fault, delay=delay)
        case "postgresql":
            await faulty.postgres.fail(fault, delay=delay)


async def answers_without(faulty: Faulty, engine: str, fault: Fault) -> Mapping[str, Answer]:
    await fail(faulty, engine, fault)
    by_halves = fault in (Fault.HALF_THEN_CUT, Fault.HALF_THEN_SILENT)
    return await faulty.answers_that_say(ROWS[engine].parts, by_halves=by_halves)


@pytest.mark.states("S0-161")
@pytest.mark.requirement("API-002", "EC-009", "BR-007")
@pytest.mark.parametrize("fault", LASTING)
async def test_without_embeddings_sparse_search_finds_tools_and_skills(faulty: Faulty, fault: Fault) -> None:
    for strategy, answer in (await answers_without(faulty, EMBEDDING, fault)).items():
        assert answer.names[0] == FOUND
        assert answer.has_schemas
        assert answer.metadata["search_type_used"] == "keyword"
        assert answer.metadata["strategy_used"] == strategy
        assert answer.metadata["skill_ids_used"] == (None if strategy == "direct" else ["code"])
        assert {skill["matched_by"] for skill in answer.body["matched_skills"]} <= {"words"}


@pytest.mark.states("S0-072", "S0-093", "S0-123", "S0-127", "S0-128")
@pytest.mark.requirement("BR-006", "BR-007", "EC-009")
@pytest.mark.parametrize("fault", LASTING)
async def test_without_skills_all_items_are_searched(faulty: Faulty, fault: Fault) -> None:
    answers = await answers_without(faulty, SKILLS, fault)
    for answer in answers.values():
        assert answer.body["tools"] == answers["direct"].body["tools"]
        assert answer.body["matched_skills"] == []
        assert answer.metadata["strategy_used"] == "direct"
        assert answer.metadata["skill_ids_used"] is None
        assert answer.metadata["search_type_used"] == "hybrid"


@pytest.mark.states("S0-124", "S0-130", "S0-161")
@pytest.mark.requirement("API-002", "BR-007", "EC-009")
@pytest.mark.parametrize(
    ("engine", "fault"),
    [
        *((QDRANT, fault) for fault in LASTING),
        *((ITEMS, fault) for fault in (Fault.WRONG, Fault.HALF_THEN_CUT, Fault.HANGING)),
    ],
)
async def test_without_the_index_a_search_is_an_error_and_no_empty_list(
    faulty: Faulty, engine: str, fault: Fault
) -> None:
    for answer in (await answers_without(faulty, engine, fault)).values():
        assert answer.body["error"]["code"] == "UNAVAILABLE"
        assert answer.body["error"]["details"]["retry_after_seconds"] == 1


@pytest.mark.requirement("BR-010", "EC-009")
@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.WRONG, Fault.HANGING])
async def test_when_skill_routing_fails_hybrid_finds_what_direct_finds(faulty: Faulty, fault: Fault) -> None:
    # The skill that a routed search filters by.
    await faulty.calls.fail(fault, naming="code", but_not="__skills__")
    answers = await faulty.answers_that_say(lambda strategy: ROUTING_FAILS[strategy])
    assert answers["hybrid"].body["tools"] == answers["direct"].body["tools"] != []
    assert answers["hybrid"].metadata["strategy_used"] == "direct"
    assert answers["hybrid"].metadata["skill_ids_used"] is None


@pytest.mark.states("S0-057", "S0-131")
@pytest.mark.requirement("BR-004", "BR-007", "EC-009")
@pytest.mark.parametrize("fault", LASTING)
async def test_without_postgresql_tools_come_without_schemas(faulty: Faulty, fault: Fault) -> None:
    for strategy, answer in (await answers_without(faulty, POSTGRESQL, fault)).items():
        assert answer.names[0] == FOUND
        assert not answer.has_schemas
        assert answer.metadata["strategy_used"] == strategy
        assert answer.metadata["search_type_used"] == "hybrid"


@pytest.mark.requirement("EC-009")
@pytest.mark.parametrize("engine", ROWS)
async def test_a_slow_response_within_the_deadline_is_used(faulty: Faulty, engine: str) -> None:
    await fail(faulty, engine, Fault.SLOW, SLOW_ENOUGH)
    for strategy, answer in (await faulty.answers_that_say(lambda _: [])).items():
        was_asked = engine != SKILLS or strategy != "direct"
        assert not was_asked or answer.took > SLOW_ENOUGH


@pytest.mark.states("S0-125")
@pytest.mark.requirement("BR-010")
async def test_hybrid_searches_all_items_while_it_matches_skills(faulty: Faulty) -> None:
    """Sequential searches would need one more request to a slow engine."""
    minimum = dict.fromkeys(("hierarchical", "hybrid"), DEADLINE_SECONDS)
    await faulty.calls.fail(Fault.SLOW, naming="__", delay=2 * SLOW_ENOUGH)
    for _ in range(TRIES):
        for strategy, took in minimum.items():
            answer = await faulty.search(strategy)
            if answer.metadata["strategy_used"] == strategy:
                minimum[strategy] = min(took, answer.took)
    assert SLOW_ENOUGH < minimum["hierarchical"] < DEADLINE_SECONDS
    assert minimum["hybrid"] - minimum["hierarchical"] < SLOW_ENOUGH


@pytest.mark.requirement("BR-004", "API-002")
@pytest.mark.parametrize("engine", [EMBEDDING, QDRANT, POSTGRESQL])
async def test_connections_that_are_reset_are_replaced(faulty: Faulty, engine: str) -> None:
    await fail(faulty, engine, Fault.RESET)
    for strategy, answer in (await faulty.search_all()).items():
        faulty.check(strategy, answer)
    await faulty.answers_that_say(lambda _: [])


@pytest.mark.requirement("BR-006")
async def test_without_a_collection_of_skills_all_items_are_searched(faulty: Faulty) -> None:
    """The engine reports the error itself, because the collection does not exist."""
    await faulty.calls.rename("__skills__", "__skulls__")
    for answer in (await faulty.answers_that_say(ROWS[SKILLS].parts)).values():
        assert answer.names[0] == FOUND
        assert answer.metadata["strategy_used"] == "direct"


@pytest.mark.requirement("API-002", "BR-007")
@pytest.mark.parametrize(
    ("both", "direct", "by_skills"),
    [
        ((EMBEDDING, POSTGRESQL), ["embedding", "catalog", "schemas"], ["embedding", "catalog", "schemas"]),
        ((EMBEDDING, SKILLS), ["embedding"], ["embedding", "skills"]),
        ((EMBEDDING, QDRANT), [NOTHING], [NOTHING]),
        ((SKILLS, POSTGRESQL), ["catalog", "schemas"], ["skills", "catalog", "schemas"]),
        ((QDRANT, POSTGRESQL), [NOTHING], [NOTHING]),
    ],
)
async def test_every_failed_part_is_named(
    faulty: Faulty, both: tuple[str, str], direct: list[str], by_skills: list[str]
) -> None:
    for engine in both:
        await fail(faulty, engine, Fault.HANGING)
    answers = await faulty.answers_that_say(Row(direct, by_skills).parts)
    assert {bool(answer.names) for answer in answers.values()} == {NOTHING not in direct}
