"""The one list of all servers' prompts, resources and templates: unique names that read back."""

import json

import pytest

from toolscript.core.errors import InvalidRequest
from toolscript.core.items import Item, ItemKind
from toolscript.core.mcp_client.listing import PROMPTS as PROMPT_LISTING
from toolscript.core.mcp_client.listing import RESOURCES as RESOURCE_LISTING
from toolscript.core.mcp_client.listing import TEMPLATES as TEMPLATE_LISTING
from toolscript.core.mcp_client.listing import listed_item
from toolscript.gateway.entries import Entries, with_server, without_server
from toolscript.gateway.model import PROMPTS, RESOURCES, TEMPLATES

pytestmark = pytest.mark.requirement("TS-010")


def prompt(server: str, name: str, **more: object) -> Item:
    return listed_item(PROMPT_LISTING.name, {"name": name, **more}, server)


def resource(server: str, uri: str, name: str = "r") -> Item:
    return listed_item(RESOURCE_LISTING.name, {"uri": uri, "name": name}, server)


def template(server: str, uri_template: str) -> Item:
    return listed_item(TEMPLATE_LISTING.name, {"uriTemplate": uri_template, "name": "t"}, server)


def names(entries: Entries, kind: str) -> list[str]:
    return list(entries.names(kind))


def test_prompts_are_named_with_their_server_and_a_bare_name_is_accepted_where_it_is_unique() -> None:
    entries = Entries([prompt("a", "review"), prompt("b", "review"), prompt("b", "plan")])
    assert names(entries, PROMPTS) == ["a__review", "b__plan", "b__review"]
    assert entries.prompt("review") is None
    plan, review = entries.prompt("plan"), entries.prompt("a__review")
    assert plan is not None
    assert review is not None
    assert (plan.item.server, plan.own_name) == ("b", "plan")
    assert (review.item.server, review.own_name) == ("a", "review")


def test_a_resource_keeps_its_uri_where_no_other_server_has_it() -> None:
    entries = Entries([resource("a", "file:///x"), resource("b", "file:///x"), resource("b", "file:///y")])
    assert names(entries, RESOURCES) == ["file:///y", "toolscript://a/file:///x", "toolscript://b/file:///x"]
    found = entries.resource("toolscript://b/file:///x")
    assert found is not None
    assert (found.item.server, found.own_name) == ("b", "file:///x")
    assert entries.resource("file:///x") is None
    assert entries.servers_of("file:///x") == {"a", "b"}


@pytest.mark.parametrize("server", ["a", "with space", "slash/50%", "日本語"])
def test_a_uri_with_its_server_reads_back(server: str) -> None:
    assert without_server(with_server(server, "db://t?q=1#f")) == (server, "db://t?q=1#f")


@pytest.mark.parametrize("uri", ["file:///x", "toolscript://", "toolscript://a", "toolscript://a/"])
def test_any_other_uri_names_no_server(uri: str) -> None:
    assert without_server(uri) == ("", uri)


def test_templates_are_a_list_of_their_own_and_found_by_how_they_begin() -> None:
    entries = Entries([template("a", "log://{day}"), template("b", "db://{table}"), resource("b", "db://t")])
    assert names(entries, TEMPLATES) == ["db://{table}", "log://{day}"]
    assert names(entries, RESOURCES) == ["db://t"]
    assert [found.item.server for found in entries.templates_of("db://other")] == ["b"]


def test_entries_are_what_the_server_sent_without_what_nobody_sees() -> None:
    icons = [{"src": "https://example.org/i.png"}]
    item = prompt("a", "plan", title="Plan\u202e", description="d", icons=icons, _meta={"secret": 1})
    [entry] = Entries([item]).page(PROMPTS, "").entries
    assert entry == {"name": "a__plan", "title": "Plan[U+202E]", "description": "d", "icons": icons}


def test_items_from_elsewhere_have_entries_too() -> None:
    schema = {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}
    item = Item("k", ItemKind.PROMPT, "a", "review", "Reviews.", input_schema=schema)
    [entry] = Entries([item]).page(PROMPTS, "").entries
    assert entry["arguments"] == [{"name": "code", "required": True}]


def test_pages_follow_one_another_even_when_entries_come_and_go() -> None:
    entries = Entries([resource("a", f"x://{n:02}") for n in range(25)])
    first = entries.page(RESOURCES, "", 10)
    fewer = Entries([resource("a", f"x://{n:02}") for n in range(25) if n not in (9, 12)])
    second = fewer.page(RESOURCES, first.next_cursor, 10)
    assert second.entries[0]["uri"] == "x://10"
    last = fewer.page(RESOURCES, second.next_cursor, 10)
    assert (len(second.entries), len(last.entries), last.next_cursor) == (10, 4, "")
    with pytest.raises(InvalidRequest, match="no cursor of this list"):
        entries.page(RESOURCES, "made up", 10)


def test_a_mark_changes_with_what_is_in_its_list_alone() -> None:
    before = Entries([prompt("a", "plan"), resource("a", "x://1")]).marks
    after = Entries([prompt("a", "plan", description="new"), resource("a", "x://1")]).marks
    assert {name for name in before if before[name] != after[name]} == {PROMPTS}
    assert json.dumps(before)
