"""GET /api/v1/documents: pages by cursor, filters, and what a plan allows."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from tests.unit.documents.http.builders import Client, Json, Parts, app_of, client_of, document
from toolscript.core.web.cursors import encode_cursor

pytestmark = pytest.mark.requirement("DOC-006", "DOC-007")

DOCUMENTS = "/api/v1/documents"


async def page(client: Client, expected: int = 200, **parameters: object) -> Json:
    answer = await client.http.get(DOCUMENTS, params={name: str(value) for name, value in parameters.items()})
    assert answer.status_code == expected, answer.text
    return dict(answer.json())


def ids(results: Sequence[Json]) -> list[str]:
    return [result["id"] for result in results]


async def test_a_listed_document_has_its_metadata_chunks_and_time(every_api: Client) -> None:
    await every_api.put(document(1, "Whales.", year=2019), document(2, "A line of the log. " * 400))
    answer = await page(every_api)
    assert answer["next_cursor"] is None
    by_id = {result["id"]: result for result in answer["results"]}
    assert by_id["doc-1"].keys() == {"id", "metadata", "chunk_count", "is_complete", "updated_at"}
    assert (by_id["doc-1"]["metadata"], by_id["doc-1"]["chunk_count"]) == ({"year": 2019}, 1)
    assert by_id["doc-2"]["chunk_count"] > 1
    assert by_id["doc-1"]["is_complete"] is True
    age = datetime.now(UTC) - datetime.fromisoformat(by_id["doc-1"]["updated_at"])
    assert timedelta(seconds=-1) < age < timedelta(minutes=5)


async def test_every_document_is_on_one_page_although_others_vanish_and_change(every_api: Client) -> None:
    await every_api.put(*(document(number) for number in range(9)))
    listed, cursor = list[str](), ""
    for _ in range(9):
        answer = await page(every_api, limit=2, cursor=cursor)
        assert len(answer["results"]) <= 2
        listed += ids(answer["results"])
        if len(listed) == 2:
            # The position itself vanishes, and a listed document changes.
            await every_api.ask("DELETE", f"{DOCUMENTS}/{listed[1]}")
            await every_api.put({"id": listed[0], "text": "changed meanwhile"})
        cursor = answer["next_cursor"]
        if not cursor:
            break
    assert sorted(listed) == [f"doc-{number}" for number in range(9)]


async def test_a_full_last_page_has_no_next_one(api: Client) -> None:
    await api.put(*(document(number) for number in range(4)))
    first = await page(api, limit=2)
    last = await page(api, limit=2, cursor=first["next_cursor"])
    assert (len(last["results"]), last["next_cursor"]) == (2, None)


async def test_filters_select_what_is_listed(every_api: Client) -> None:
    await every_api.put(*(document(number, year=2019 + number) for number in range(5)))
    filters = json.dumps({"must": [{"field": "year", "op": "gte", "value": 2022}]})
    first = await page(every_api, filters=filters, limit=1)
    second = await page(every_api, filters=filters, limit=1, cursor=first["next_cursor"])
    assert sorted(ids(first["results"]) + ids(second["results"])) == ["doc-3", "doc-4"]
    assert second["next_cursor"] is None


INVALID: list[tuple[Json, str]] = [
    ({"filters": "year=2020"}, "filters"),
    ({"filters": '{"all": []}'}, "filters"),
    ({"filters": '{"must": [{"field": "a", "op": "like", "value": 1}]}'}, "filters"),
    ({"filters": '{"must": [{"field": "a", "op": "in", "value": 1}]}'}, "filters"),
    ({"filters": '{"must": [{"field": "a", "op": "eq", "value": "\\ud800"}]}'}, "filters"),
    ({"filters": " " * 3_988 + '{"must": []} '}, "filters"),
    ({"cursor": "made up"}, "cursor"),
    ({"cursor": encode_cursor("0" * 24) + "!"}, "cursor"),
    ({"cursor": encode_cursor("0" * 24) + "\n"}, "cursor"),
    ({"cursor": encode_cursor(7)}, "cursor"),
    ({"cursor": encode_cursor("doc-1")}, "cursor"),
    ({"cursor": encode_cursor("g" * 24)}, "cursor"),
    ({"cursor": encode_cursor("\0")}, "cursor"),
]


async def test_an_invalid_filter_or_cursor_is_refused_with_its_field(
    every_api: Client, subtests: pytest.Subtests
) -> None:
    for parameters, field in INVALID:
        with subtests.test(parameters=parameters, field=field):
            error = (await page(every_api, 422, **parameters))["error"]
            assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", field)
            assert error["details"]["hint"]


async def test_the_longest_filter_is_accepted(every_api: Client) -> None:
    await every_api.put(document(1))
    assert ids((await page(every_api, filters=" " * 3_988 + '{"must": []}'))["results"]) == ["doc-1"]


async def test_a_plan_limits_pages_fields_and_filters(parts: Parts) -> None:
    app = app_of(parts.routes())
    async with client_of(app) as acme, client_of(app, "token-of-curious") as curious:
        await acme.put(document(1, title="Whales", year=2019))
        assert (await page(curious))["results"][0]["metadata"] == {"title": "Whales"}
        filters = json.dumps({"must": [{"field": "year", "op": "eq", "value": 2019}]})
        assert (await page(curious, 403, filters=filters))["error"]["code"] == "PLAN_EXCEEDED"
    async with client_of(app, "token-of-limited") as limited:
        await limited.put(*(document(number) for number in range(7)))
        first = await page(limited)
        assert len(first["results"]) == 5
        assert len((await page(limited, cursor=first["next_cursor"]))["results"]) == 2


@pytest.mark.requirement("DOC-004")
async def test_no_list_has_documents_of_another_tenant(every_api: Client, every_parts: Parts) -> None:
    await every_api.put(*(document(number) for number in range(3)))
    cursor = (await page(every_api, limit=1))["next_cursor"]
    async with client_of(app_of(every_parts.routes()), "token-of-other") as other:
        assert await page(other) == {"results": [], "next_cursor": None}
        assert (await page(other, cursor=cursor))["results"] == []
