"""JSON conversion of the gateway's values, there and back."""

import json
from typing import Any, TypeVar

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolscript.core.item_json import item_from_json
from toolscript.core.items import Item, ItemKind
from toolscript.core.mcp_client.model import CallResult, ServerState, ServerStatus, Transport
from toolscript.core.text import readable
from toolscript.gateway.json import (
    ANSWER,
    HIT,
    ITEM,
    answer_from_json,
    answer_to_json,
    call_from_json,
    call_to_json,
    health_from_json,
    health_to_json,
    item_of_json,
    item_to_json,
    states_from_json,
    states_to_json,
)
from toolscript.gateway.model import GatewayHealth, LocalAnswer, LocalHit, LocalStep, ScoreParts, WordMatch

pytestmark = [pytest.mark.requirement("TS-008", "TS-010"), pytest.mark.slow]

T = TypeVar("T")

Words = st.text(max_size=12).map(readable)
Names = st.text(min_size=1, max_size=12).map(readable).filter(str.strip)
Share = st.floats(0, 1)
Json = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.integers() | Words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(Words, inner, max_size=3),
    max_leaves=6,
)
Objects = st.dictionaries(Words, Json, max_size=3)
Items = st.builds(
    lambda **fields: item_from_json(fields),
    type=st.sampled_from(ItemKind),
    server=Names,
    name=Names,
    description=Words,
    input_schema=st.none() | Objects,
    output_schema=st.none() | Objects,
    annotations=st.none() | Objects,
)
Parts = st.builds(
    ScoreParts,
    semantic=st.none() | Share,
    words=Share,
    fuzzy=Share,
    boost=Share,
    matched=st.lists(st.builds(WordMatch, Words, Words), max_size=3).map(tuple),
    contributions=st.dictionaries(Words, st.floats(-9, 9), max_size=3),
)
PlainItems = st.builds(
    lambda kind, server, name, text: item_from_json(
        {"type": kind, "server": server, "name": name, "description": text}
    ),
    st.sampled_from(ItemKind),
    Names,
    Names,
    Words,
)
Hits = st.lists(st.builds(LocalHit, PlainItems, Share, Words, Parts), max_size=3).map(tuple)
Answers = st.builds(
    LocalAnswer,
    query=Words,
    hits=Hits,
    total=st.integers(0, 100),
    threshold=Share,
    semantic=st.booleans(),
    hint=Words,
    near_misses=Hits,
    steps=st.lists(st.builds(LocalStep, Words, Hits, st.booleans()), max_size=2).map(tuple),
    good_match=st.booleans(),
    unmatched=st.lists(Words, max_size=3).map(tuple),
    milliseconds=st.dictionaries(Words, Share, max_size=2),
)
Counts = st.integers(0, 1000)
States = st.builds(
    ServerState,
    Words,
    st.sampled_from(Transport),
    st.sampled_from(ServerStatus),
    *(Words, Words, Words),
    *(Counts, Counts, Counts),
)
Healths = st.builds(
    GatewayHealth,
    version=Words,
    ready=st.booleans(),
    semantic=st.booleans(),
    model=Words,
    items=Counts,
    servers=st.lists(States, max_size=3).map(tuple),
    note=Words,
)


def sent(data: T) -> T:
    """Serialise and parse, as another process does."""
    carried: T = json.loads(json.dumps(data, ensure_ascii=False, allow_nan=False).encode())
    return carried


@settings(deadline=None)
@given(Answers)
def test_an_answer_comes_back_whole_when_it_is_explained(answer: LocalAnswer) -> None:
    assert answer_from_json(sent(answer_to_json(answer, explain=True))) == answer


@settings(deadline=None)
@given(Answers, st.booleans())
def test_an_answer_has_the_fields_of_its_schema_and_no_others(answer: LocalAnswer, schemas: bool) -> None:
    hit = {**HIT, "additionalProperties": False}
    lists = {name: {"type": "array", "items": hit} for name in ("results", "near_misses")}
    fields: Any = ANSWER["properties"]
    closed = {**ANSWER, "properties": {**fields, **lists}, "additionalProperties": False}
    jsonschema.validate(sent(answer_to_json(answer, explain=True, schemas=schemas)), closed)


@settings(deadline=None)
@given(Items, st.booleans())
def test_an_item_has_the_fields_of_its_schema_and_no_others(item: Item, schemas: bool) -> None:
    jsonschema.validate(sent(item_to_json(item, schemas=schemas)), {**ITEM, "additionalProperties": False})


@settings(deadline=None)
@given(Answers)
def test_an_unexplained_answer_comes_back_without_its_parts(answer: LocalAnswer) -> None:
    data = sent(answer_to_json(answer))
    assert all("parts" not in hit for hit in data["results"])
    back = answer_from_json(data)
    assert [(hit.item, hit.confidence, hit.reason) for hit in back.hits] == [
        (hit.item, hit.confidence, hit.reason) for hit in answer.hits
    ]
    assert all(hit.parts == ScoreParts() for hit in back.hits)


@settings(deadline=None)
@given(Items)
def test_an_item_comes_back_with_its_schemas(item: Item) -> None:
    assert item_of_json(sent(item_to_json(item, schemas=True))) == item


@settings(deadline=None)
@given(Items)
def test_an_item_without_its_schemas_has_none(item: Item) -> None:
    data = sent(item_to_json(item, schemas=False))
    assert set(data) == {"toolId", "kind", "serverName", "toolName", "description"}
    back = item_of_json(data)
    assert (back.kind, back.server, back.name, back.description) == (
        item.kind,
        item.server,
        item.name,
        item.description,
    )
    assert (back.input_schema, back.output_schema, back.annotations) == (None, None, None)


@given(st.lists(Objects, max_size=3), Json, st.booleans())
def test_a_call_result_comes_back_complete(
    content: list[dict[str, Any]], structured: object, failed: bool
) -> None:
    result = CallResult(content, structured, failed)
    assert call_from_json(sent(call_to_json(result))) == result


@given(st.lists(States, max_size=4))
def test_states_come_back(states: list[ServerState]) -> None:
    assert states_from_json(sent(states_to_json(states))) == states


@given(Healths)
def test_health_comes_back(health: GatewayHealth) -> None:
    assert health_from_json(sent(health_to_json(health))) == health


READY = ServerState("a", Transport.STDIO, ServerStatus.READY)
FAILED = ServerState("b", Transport.STDIO, ServerStatus.FAILED)


@pytest.mark.parametrize(
    ("ready", "semantic", "servers", "status"),
    [
        (True, True, (READY,), "ok"),
        (True, True, (), "ok"),
        (True, False, (READY,), "degraded"),
        (True, True, (READY, FAILED), "degraded"),
        (False, False, (FAILED,), "starting"),
        (False, True, (READY,), "starting"),
    ],
)
def test_the_status_is_ok_degraded_or_starting(
    ready: bool, semantic: bool, servers: tuple[ServerState, ...], status: str
) -> None:
    health = GatewayHealth("1", ready, semantic, "m", 3, servers)
    assert health_to_json(health)["status"] == status
