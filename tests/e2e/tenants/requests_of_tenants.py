"""Requests of every kind, from a tenant that tries to read data of another."""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from tests.e2e.tenants.world import HOSTILE_IDS, SUBJECTS, WORDS, Member

LINES, EVENTS = "application/x-ndjson", "text/event-stream"
FOUND, REFUSED, NOT_THERE = frozenset({200}), frozenset({400, 422}), frozenset({404})
HOSTILE_TEXTS = (
    "' OR tenant != '' --",
    '"} ], "should": [{"key": "tenant"}]',
    "{{tenant}} ${tenant} %(tenant)s",
    "tenant:* OR owner:*",
    "* [] {} \\ \u202e \U0001f512 \x1b[2J",
    "../../documents?tenant=*",
    "<script>fetch('/documents')</script>",
)
HOSTILE_FIELDS = (
    "tenant",
    "meta.tenant",
    "meta.ftenant",
    "meta.fowner",
    "ftenant",
    "tenant[]",
    "meta[].tenant",
    '"tenant"',
    "doc_id",
    "head",
    "version",
    "$or",
    "*",
    "a\\.b",
)

Json = dict[str, Any]


@dataclass(frozen=True)
class Ask:
    """`nothing`: no hit is allowed, because only other tenants have matches. `token`: replaces the own one."""

    kind: str
    body: object = None
    method: str = "POST"
    path: str = "/search"
    headers: Mapping[str, str] = field(default_factory=dict)
    statuses: frozenset[int] = FOUND
    nothing: bool = False
    token: str | None = None

    @property
    def sent(self) -> list[str]:
        """Return the text of the request that a response could echo."""
        return [self.path, json.dumps(self.body), *self.headers.values()]


Make = Callable[[Member, Member, random.Random], Ask]


def _text(chance: random.Random) -> str:
    return " ".join(chance.sample(WORDS, 2))


def _search(kind: str, **fixed: object) -> Make:
    def make(_: Member, __: Member, chance: random.Random) -> Ask:
        return Ask(kind, {"query": _text(chance), "top_k": chance.choice([1, 10, 50, 200]), **fixed})

    return make


def _filtered(op: str, field_: str, value: Callable[[random.Random], object]) -> Make:
    def make(_: Member, __: Member, chance: random.Random) -> Ask:
        condition = {"field": field_, "op": op, "value": value(chance)}
        body = {"filters": {chance.choice(["must", "should", "must_not"]): [condition]}, "top_k": 50}
        return Ask(f"filter {op}", body)

    return make


def _offset(_: Member, __: Member, chance: random.Random) -> Ask:
    return Ask("offset", {"query": _text(chance), "offset": chance.choice([1, 3, 10, 900]), "top_k": 20})


def _snippets(_: Member, __: Member, chance: random.Random) -> Ask:
    output = {"include_snippets": chance.random() < 0.8, "snippet_max_chars": chance.choice([1, 40, 240, 4000])}
    return Ask("snippets", {"query": _text(chance), **output})


def _metadata_fields(_: Member, __: Member, chance: random.Random) -> Ask:
    names = chance.choice([["owner"], ["tenant", "meta"], [], ["n", "owner", "nobody has this"]])
    return Ask("metadata_fields", {"query": _text(chance), "metadata_fields": names})


def _stream(kind: str, accept: str) -> Make:
    def make(_: Member, __: Member, chance: random.Random) -> Ask:
        body = {"query": _text(chance), "search_type": chance.choice(["semantic", "keyword", "hybrid"])}
        return Ask(kind, body, headers={"accept": accept})

    return make


def _own_document(member: Member, __: Member, chance: random.Random) -> Ask:
    return _get("own document", chance.choice(member.ids), FOUND | NOT_THERE)


def _document_of_another(_: Member, other: Member, chance: random.Random) -> Ask:
    theirs = chance.choice([other.own_id, f"{other.name}/doc-1", f"{other.name}\u00a0doc-1", other.marker])
    return _get("document of another", theirs, NOT_THERE)


def _document_as_another(_: Member, other: Member, chance: random.Random) -> Ask:
    """Both tenants have this id: the response must be the caller's own document, whatever the URL names."""
    requests = _get(
        "shared id, naming another", chance.choice(["doc-0", "doc-1", *HOSTILE_IDS]), FOUND | NOT_THERE
    )
    path = f"{requests.path}?tenant={other.name}&access_token={other.token}"
    return replace(requests, path=path, headers=_claims(other))


def _get(kind: str, id_: str, statuses: frozenset[int]) -> Ask:
    return Ask(kind, None, "GET", f"/documents/{quote(id_, safe='')}", statuses=statuses)


def _word_of_another(_: Member, other: Member, chance: random.Random) -> Ask:
    search_type = chance.choice(["keyword", "semantic", "hybrid"])
    body = {"query": f"{other.marker} {other.name}", "search_type": search_type, "top_k": 50}
    return Ask(f"word of another, {search_type}", body, nothing=search_type == "keyword")


def _filter_for_another(_: Member, other: Member, chance: random.Random) -> Ask:
    name, value = chance.choice([("owner", other.marker), ("tenant", other.name), ("meta.tenant", other.name)])
    op = chance.choice(["eq", "in", "contains"])
    condition = {"field": name, "op": op, "value": [value] if op == "in" else value}
    body = {"filters": {chance.choice(["must", "should"]): [condition]}} | _maybe_query(chance)
    return Ask("filter for another", body, nothing=True)


def _anything_but_own(member: Member, __: Member, chance: random.Random) -> Ask:
    """Return a filter that matches documents of all other tenants, and none of the caller's."""
    filters: Json = chance.choice(
        [
            {"must": [{"field": "owner", "op": "ne", "value": member.marker}]},
            {"must": [{"field": "owner", "op": "nin", "value": [member.marker]}]},
            {"must_not": [{"field": "owner", "op": "eq", "value": member.marker}]},
        ]
    )
    return Ask("anything but own", {"filters": filters, **_maybe_query(chance)}, nothing=True)


def _maybe_query(chance: random.Random) -> Json:
    return {"query": _text(chance)} if chance.random() < 0.5 else {}


def _hostile_query(_: Member, other: Member, chance: random.Random) -> Ask:
    return Ask("hostile query", {"query": f"{chance.choice(HOSTILE_TEXTS)} {other.name}", "top_k": 50})


def _hostile_filter(_: Member, other: Member, chance: random.Random) -> Ask:
    name, op = chance.choice(HOSTILE_FIELDS), chance.choice(["eq", "ne", "exists", "contains", "in", "gt"])
    value: object = chance.choice([other.name, other.marker, *HOSTILE_TEXTS])
    value = {"exists": True, "in": [value], "gt": "2026-01-01"}.get(op, value)
    body = {
        "filters": {chance.choice(["must", "should", "must_not"]): [{"field": name, "op": op, "value": value}]}
    }
    return Ask("hostile filter", {**body, **_maybe_query(chance), "top_k": 50})


def _claims(other: Member) -> dict[str, str]:
    """Return headers that name another tenant, as other systems may accept."""
    names = ("X-Tenant", "X-Tenant-Id", "X-Org-Id", "X-Debug-Tenant", "X-Forwarded-User", "X-Scope-OrgID")
    proofs = {"X-Debug-Bypass-Auth": "1", "X-Authorization": f"Bearer {other.token}"}
    cookie = {"Cookie": f"access_token={other.token}; tenant={other.name}"}
    return {**dict.fromkeys(names, other.name), **proofs, **cookie}


def _hostile_headers(_: Member, other: Member, chance: random.Random) -> Ask:
    body = {"query": _text(chance), "search_type": chance.choice(["semantic", "keyword", "hybrid"])}
    path = f"/search?tenant={other.name}&tenant_id={other.name}&access_token={other.token}"
    return Ask("hostile headers", body, path=path, headers=_claims(other))


def _tenant_in_body(_: Member, other: Member, chance: random.Random) -> Ask:
    name = chance.choice(["tenant", "tenant_id", "__proto__", "shard_key"])
    return Ask("tenant in the body", {"query": _text(chance), name: other.name}, statuses=REFUSED)


def _without_a_token(_: Member, other: Member, chance: random.Random) -> Ask:
    body = {"query": _text(chance)}
    return Ask("no token", body, headers=_claims(other), statuses=frozenset({401}), token="")


def _year(chance: random.Random) -> int:
    return 2000 + chance.randrange(20)


def _many(chance: random.Random) -> list[object]:
    return [f"tag-{chance.randrange(5)}", chance.randrange(9), True]


SINGLE: tuple[tuple[int, Make], ...] = (
    (6, _search("semantic", search_type="semantic")),
    (6, _search("keyword", search_type="keyword")),
    (5, _search("hybrid rrf", fusion="rrf")),
    (5, _search("hybrid zscore", fusion="zscore")),
    (5, _search("hybrid best", fusion="best")),
    (2, _search("with filters", filters={"must": [{"field": "tags", "op": "in", "value": ["tag-1", "tag-2"]}]})),
    (1, _filtered("eq", "year", _year)),
    (1, _filtered("ne", "year", _year)),
    (1, _filtered("lt", "year", _year)),
    (1, _filtered("lte", "price", lambda chance: chance.random() * 20)),
    (1, _filtered("gt", "when", lambda chance: f"2026-01-{chance.randrange(1, 28):02}")),
    (1, _filtered("gte", "n", lambda chance: chance.randrange(10))),
    (1, _filtered("contains", "title", lambda chance: chance.choice(SUBJECTS)[1:5])),
    (1, _filtered("in", "tags", _many)),
    (1, _filtered("nin", "tags", _many)),
    (1, _filtered("exists", "public", lambda chance: chance.random() < 0.5)),
    (3, _offset),
    (3, _snippets),
    (3, _metadata_fields),
    (4, _stream("stream of lines", LINES)),
    (4, _stream("stream of events", EVENTS)),
    (5, _own_document),
    (4, _document_of_another),
    (4, _document_as_another),
    (5, _word_of_another),
    (5, _filter_for_another),
    (5, _anything_but_own),
    (3, _hostile_query),
    (4, _hostile_filter),
    (4, _hostile_headers),
    (2, _tenant_in_body),
    (1, _without_a_token),
)
