"""`server`, `why_not` and `explain` of `GET /search`; `log` is in test_activity_api.py."""

from typing import Any
from urllib.parse import quote

import pytest
from starlette.applications import Starlette

from tests.unit.gateway.http.requests import ask
from tests.unit.gateway.runtime.builders import FILES, MAIL, open_world
from tests.unit.gateway.runtime.serving import open_app
from toolscript.core.retrieval.curation import Curation, Rule, RuleKind

pytestmark = pytest.mark.requirement("TS-008")


async def search(app: Starlette, **parameters: object) -> dict[str, Any]:
    query = "&".join(f"{name}={quote(str(value))}" for name, value in parameters.items())
    reply = await ask(app, f"/search?{query}")
    assert reply.status == 200, reply.body
    return dict(reply.json)


async def test_a_search_is_limited_to_the_servers_that_it_names(app: Starlette) -> None:
    every = await search(app, q="send a file", threshold=0, limit=100)
    assert {hit["serverName"] for hit in every["results"]} >= {"files", "mail"}
    mail = await search(app, q="send a file", threshold=0, limit=100, server="mail")
    assert {hit["serverName"] for hit in mail["results"]} == {"mail"}
    reply = await ask(app, "/search?q=send+a+file&threshold=0&limit=100&server=mail&server=files")
    assert {hit["serverName"] for hit in reply.json["results"]} == {"mail", "files"}


async def test_a_server_that_nobody_has_is_named_with_the_nearest(app: Starlette) -> None:
    reply = await ask(app, "/search?q=send&server=mial")
    assert (reply.status, reply.error["details"]["nearest"][0]) == (404, "mail")


async def test_why_not_says_what_would_bring_a_tool_back(app: Starlette) -> None:
    query = "read the contents of a file"
    for parameters, about, reason, hint in (
        ({"limit": 3}, "files__read_file", "returned", "at place 1"),
        ({"limit": 1}, "files__write_file", "beyond_limit", "raise `limit`"),
        ({"threshold": 1, "limit": 100}, "mail__send_mail", "below_threshold", "lower `threshold`"),
        ({}, "files__sum_up", "other_kind", "it is a prompt"),
        ({"server": "mail"}, "files__read_file", "other_server", "limited to mail"),
        ({}, "files__raed_file", "unknown", "there is no tool"),
    ):
        why = (await search(app, q=query, why_not=about, **parameters))["why_not"]
        assert (why["about"], why["reason"]) == (about, reason), why
        assert hint in why["message"], why
    assert "files__read_file" in why["nearest"]
    assert "why_not" not in await search(app, q=query)
    assert (await ask(app, "/search?q=x&why_not=nonsense")).status == 422


async def test_a_rule_that_excludes_a_tool_is_why_and_no_rule_brings_one_of_another_server() -> None:
    async with open_world() as world:
        world.use("files", "mail")
        world.servers.put("files", *FILES)
        world.servers.put("mail", *MAIL)
        await world.settled()
        rules = (
            Rule(RuleKind.PROMOTE, "read file", "mail__send_mail"),
            Rule(RuleKind.NEVER, "read file", "files__read_file"),
        )
        world.search.curation = Curation(rules)
        app = open_app(world.gateway)
        answer = await search(app, q="read a file", server="files", why_not="files__read_file", limit=10)
    assert (answer["why_not"]["reason"], "remove the rule" in answer["why_not"]["message"]) == ("excluded", True)
    assert {hit["serverName"] for hit in answer["results"]} == {"files"}


async def test_an_explained_answer_says_what_ran(app: Starlette) -> None:
    hybrid = await search(app, q="read a file", explain="true")
    assert (hybrid["search_type"], len(hybrid["index_version"]), len(hybrid["weights_version"])) == (
        "hybrid",
        12,
        12,
    )
    assert hybrid["took_ms"] > 0
    keyword = await search(app, q="read a file", explain="true", search_type="keyword")
    assert (keyword["search_type"], "weights_version" in keyword) == ("keyword", False)
    assert {"search_type", "took_ms"}.isdisjoint(await search(app, q="read a file"))
