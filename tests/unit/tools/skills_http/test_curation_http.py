"""Rules over HTTP and by command, on the real engines: what searches find changes with them."""

import asyncio
import json
from typing import Any

import pytest

from tests.e2e.commands import run_here
from tests.unit.tools.skills_http.builders import AUDIT, Managed
from toolscript.core.retrieval.curation import Rule, RuleKind

pytestmark = pytest.mark.requirement("SK-001")

CURATION = "/api/v1/curation"
# Searches of a service that did not write the rule see it within this time.
SECONDS = 20


async def found(managed: Managed, query: str, **more: object) -> Any:
    body = {"query": query, "limit": 5, "threshold": 0, "strategy": "direct", **more}
    return await managed.ask("POST", "/api/v1/tools/search", json=body)


async def first(managed: Managed, query: str) -> str:
    return str((await found(managed, query))["results"][0]["name"])


async def ids_of(managed: Managed) -> list[int]:
    """Return the ids of the tools that a request about mail finds, best first."""
    return [hit["id"] for hit in (await found(managed, "send an email"))["results"]]


async def remove_all(managed: Managed) -> None:
    for rule in (await managed.ask("GET", CURATION))["results"]:
        assert (await managed.client.delete(f"{CURATION}/{rule['id']}?reviewer=ann")).status_code == 204


async def test_a_rule_is_added_applied_changed_and_deleted(managed: Managed) -> None:
    best, *_, last = before = await ids_of(managed)
    sent = {"kind": "promote", "words": "email", "tool_id": last, "reviewer": "ann"}
    answer = await managed.client.post(CURATION, json=sent)
    assert answer.status_code == 201
    rule = answer.json()
    assert answer.headers["location"] == f"{CURATION}/{rule['id']}"
    assert (rule["namespace"], rule["kind"], rule["words"]) == ("default", "promote", "email")
    assert (rule["tool_id"], rule["means"], rule["mutual"]) == (last, None, False)
    assert "__" in rule["tool"]
    assert await managed.ask("GET", f"{CURATION}/{rule['id']}") == rule
    assert (await ids_of(managed))[0] == last, "the next search of the same process sees it"
    explained = await found(managed, "send an email", explain=True)
    assert explained["results"][0]["explanation"]["promoted_for"] == "email"
    assert explained["metadata"]["rules"] == [f"tool {last} is promoted for `email`"]
    assert explained["metadata"]["good_match"] is True
    changed = await managed.ask("PATCH", f"{CURATION}/{rule['id']}", json={"words": "postcard", "reviewer": "bob"})
    assert {**changed, "updated_at": ""} == {**rule, "words": "postcard", "updated_at": ""}
    assert await ids_of(managed) == before
    await remove_all(managed)
    await managed.refused("GET", f"{CURATION}/{rule['id']}", 404)
    audit = (await managed.ask("GET", AUDIT, limit=3))["results"]
    assert [(entry["action"], entry["actor"], entry["subject"]) for entry in audit] == [
        ("curation.remove", "ann", str(rule["id"])),
        ("curation.change", "bob", str(rule["id"])),
        ("curation.add", "ann", str(rule["id"])),
    ]
    assert best != last


async def test_a_tool_that_is_never_for_a_request_is_gone_and_why_not_says_so(managed: Managed) -> None:
    best = (await ids_of(managed))[0]
    await managed.ask("POST", CURATION, 201, {"kind": "never", "words": "an e-mail", "tool_id": best})
    await managed.ask("POST", CURATION, 201, {"kind": "synonym", "words": "email", "means": "e mail"})
    assert best not in await ids_of(managed)
    absent = (await found(managed, "send an email", why_not=str(best)))["metadata"]["why_not"]
    assert absent["reason"] == "excluded"
    assert "never for `an e-mail`" in absent["message"]
    await remove_all(managed)
    assert (await ids_of(managed))[0] == best


async def test_a_rule_that_another_process_wrote_is_applied_soon(managed: Managed) -> None:
    last = (await ids_of(managed))[-1]
    row = await managed.stores.curation.add(Rule(RuleKind.PROMOTE, "email", last), "ann")
    async with asyncio.timeout(SECONDS):
        while (await ids_of(managed))[0] != last:
            pass
    await managed.stores.curation.remove(row.id, "ann")
    async with asyncio.timeout(SECONDS):
        while (await ids_of(managed))[0] == last:
            pass


async def test_rules_are_listed_page_by_page(managed: Managed) -> None:
    for number in range(5):
        sent = {"kind": "synonym", "words": f"w{number}", "means": "file", "mutual": number == 0}
        await managed.ask("POST", CURATION, 201, sent)
    words: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = await managed.ask("GET", CURATION, limit=2, cursor=cursor)
        words += [rule["words"] for rule in page["results"]]
        cursor = page["next_cursor"]
    assert words == [f"w{number}" for number in range(5)]
    await remove_all(managed)


@pytest.mark.parametrize(
    ("sent", "status", "field"),
    [
        ({"kind": "promote", "words": "x"}, 422, "tool"),
        ({"kind": "boost", "words": "x"}, 422, "kind"),
        ({"kind": "synonym", "words": "of the", "means": "y"}, 422, "words"),
        ({"kind": "synonym", "words": "x" * 201, "means": "y"}, 422, "words"),
        ({"kind": "synonym", "words": "x", "means": "y", "weight": 2}, 422, "weight"),
        ({"kind": "never", "words": "x", "tool_id": 999_999}, 404, "tool_id"),
    ],
)
async def test_a_wrong_rule_is_refused_with_the_field_that_is_wrong(
    managed: Managed, sent: dict[str, object], status: int, field: str
) -> None:
    error = await managed.refused("POST", CURATION, status, sent)
    assert field in json.dumps(error["details"])


async def test_the_same_rule_twice_is_a_conflict(managed: Managed) -> None:
    sent = {"kind": "synonym", "words": "x", "means": "file"}
    added = await managed.ask("POST", CURATION, 201, sent)
    assert (await managed.refused("POST", CURATION, 409, sent))["code"] == "CONFLICT"
    await managed.refused("PATCH", f"{CURATION}/{added['id']}", 422, {"tool_id": 1})
    await remove_all(managed)


async def test_the_commands_add_list_and_remove_rules(managed: Managed) -> None:
    environment, item = managed.installation.environment, (await ids_of(managed))[-1]

    def command(*arguments: str, code: int = 0) -> Any:
        done = run_here(environment, "tools", "curation", *arguments, "--json", code=code)
        return json.loads(done.stderr.splitlines()[-1] if code else done.stdout)

    promoted = await asyncio.to_thread(command, "promote", str(item), "email", "--by", "ann")
    await asyncio.to_thread(command, "synonym", "PR", "pull request", "--mutual", "--by", "ann")
    await asyncio.to_thread(command, "never", str(item), "fax", "--by", "ann")
    listed = (await asyncio.to_thread(command, "list"))["results"]
    assert listed[0] == promoted
    assert [rule["kind"] for rule in listed] == ["promote", "synonym", "never"]
    table = await asyncio.to_thread(run_here, environment, "tools", "curation", "list")
    assert "pull request (mutual)" in table.stdout
    for rule in listed:
        await asyncio.to_thread(command, "remove", str(rule["id"]), "--by", "ann")
    refused = await asyncio.to_thread(command, "remove", str(promoted["id"]), "--by", "ann", code=2)
    assert refused["error"]["code"] == "NOT_FOUND"
