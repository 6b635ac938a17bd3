"""Checks that a response contains only the caller's own data."""

import json
from dataclasses import dataclass
from typing import Any

import httpx2

from tests.e2e.tenants.requests_of_tenants import EVENTS, LINES, Ask
from tests.e2e.tenants.world import Member, foreign_words

# A snippet of so many characters contains a whole sentence, and so the secret word.
LONG_ENOUGH = 240

Json = dict[str, Any]


@dataclass(frozen=True)
class Verdict:
    """`foreign`: leaked data of another tenant, with its path. `wrong`: any other error."""

    hits: list[Json]
    foreign: list[str]
    wrong: list[str]
    end: Json


def judged(member: Member, ask: Ask, answer: httpx2.Response) -> Verdict:
    text = answer.text
    # Search responses must not echo anything; others may echo the request, which is no leak.
    echoes = ask.sent if answer.status_code >= 400 or ask.method in ("PUT", "DELETE") else []
    leaked = foreign_words(member, text, echoes) | foreign_words(member, _told(answer), ask.sent)
    foreign = [f"{ask.kind}: words of another tenant: {sorted(leaked)[:3]} in {text[:300]}"] if leaked else []
    if answer.status_code not in ask.statuses:
        return Verdict([], foreign, [f"{ask.kind}: status {answer.status_code}: {text[:300]}"], {})
    if answer.status_code != 200:
        return Verdict([], foreign, _one_shape(ask, answer), {})
    if ask.method == "POST":
        hits, end = found_in(ask.headers.get("accept", ""), text)
        return Verdict(hits, foreign + _not_own(member, ask, hits), _amiss(member, ask, hits, end), end)
    if ask.method == "GET":
        return Verdict([], foreign + _not_owned(member, answer.json()), [], {})
    return Verdict([], foreign, [], answer.json())


def _told(answer: httpx2.Response) -> str:
    return "\n".join(f"{name}: {value}" for name, value in answer.headers.multi_items())


def _one_shape(ask: Ask, answer: httpx2.Response) -> list[str]:
    message = answer.json()
    is_right = message.keys() == {"error"} and message["error"].keys() == {"code", "message", "details"}
    return [] if is_right else [f"{ask.kind}: an error of another shape: {answer.text[:300]}"]


def found_in(accept: str, text: str) -> tuple[list[Json], Json]:
    """Return the hits of a response, and its other fields."""
    if accept == LINES:
        *hits, end = [json.loads(line) for line in text.splitlines()]
    elif accept == EVENTS:
        *hits, end = [json.loads(event.partition("\ndata: ")[2]) for event in text.split("\n\n") if event]
    else:
        end = json.loads(text)
        hits = end.pop("hits")
    return hits, end


def _not_own(member: Member, ask: Ask, hits: list[Json]) -> list[str]:
    """Return the hits that are not certainly the caller's."""
    if ask.nothing and hits:
        return [f"{ask.kind}: {len(hits)} hits for what only others have: {hits[0]}"]
    return [f"{ask.kind}: {hit}" for hit in hits if not _is_own(member, hit)]


def _is_own(member: Member, hit: Json) -> bool:
    metadata, snippet = hit["metadata"], hit["snippet"]
    if metadata.get("owner", member.marker) != member.marker or metadata.get("tenant", member.name) != member.name:
        return False
    if snippet is not None and len(snippet) >= LONG_ENOUGH and member.marker not in snippet:
        return False
    return hit["doc_id"] in member.every_id


def _not_owned(member: Member, document: Json) -> list[str]:
    owned = document["metadata"]["owner"] == member.marker and member.marker in document["text"]
    return [] if owned else [f"a document of another tenant: {str(document)[:300]}"]


def _amiss(member: Member, ask: Ask, hits: list[Json], end: Json) -> list[str]:
    ids = [hit["doc_id"] for hit in hits]
    wrong = [f"{ask.kind}: twice the same document: {ids}"] if len(set(ids)) < len(ids) else []
    if "error" in end or end.get("degraded"):
        wrong.append(f"{ask.kind}: {str(end)[:300]}")
    elif end["total"] > (0 if ask.nothing else len(member.every_id)):
        wrong.append(f"{ask.kind}: a total of {end['total']}: others were counted")
    return wrong
