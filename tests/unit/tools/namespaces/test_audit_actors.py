"""The audit's actor is authenticated; whom the client decides for is its own word, and stands beside the actor."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.token_issuer import an_issuer
from tests.unit.tools.namespaces.builders import MANAGE, Client, Json, Service, planted

pytestmark = pytest.mark.requirement("SK-006")

API = "/api/v1"
TOOL, CHANGE, SUGGESTION = 1, 1, 1
RULE = {"kind": "synonym", "words": "PR", "means": "pull request"}
TAGS_AUDITED = {"skills", "suggestions", "curation", "changes"}


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    async with planted(tmp_path, ("default", "plain")) as served:
        yield served


def client(service: Service, **claims: Any) -> Client:
    return Client(service.http, an_issuer().token("acme", scope=MANAGE, **claims))


async def done(client: Client, method: str, path: str, json: object = None) -> Any:
    answer = await client.ask(method, f"{API}{path}", json)
    assert answer.status_code < 300, answer.text
    return answer.json() if answer.content else None


async def latest(service: Service) -> Json:
    entry: Json = (await service.admin.got(f"{API}/audit?limit=1"))["results"][0]
    return entry


async def who(service: Service) -> tuple[str, str, str | None]:
    entry = await latest(service)
    return entry["action"], entry["actor"], entry["on_behalf_of"]


async def test_the_actor_of_every_write_is_the_subject_of_the_token(service: Service) -> None:
    ann = client(service, sub="user-17")
    rule = await done(ann, "POST", "/curation", {**RULE, "on_behalf_of": "root"})
    assert await who(service) == ("curation.add", "user-17", "root")
    await done(ann, "PATCH", f"/curation/{rule['id']}", {"words": "MR", "reviewer": "root"})
    assert await who(service) == ("curation.change", "user-17", "root")
    await done(ann, "DELETE", f"/curation/{rule['id']}?on_behalf_of=root")
    assert await who(service) == ("curation.remove", "user-17", "root")
    assigned = await done(ann, "PUT", f"/tools/{TOOL}/skills", {"skill_ids": ["communication"]})
    assert await who(service) == ("item.assign", "user-17", None)
    assert assigned["skills"][0]["reason"] == "set by user-17"
    await done(ann, "DELETE", f"/tools/{TOOL}/skills?reviewer=root")
    assert await who(service) == ("item.release", "user-17", "root")
    change = await done(ann, "POST", f"/changes/{CHANGE}/approve", {"on_behalf_of": "root"})
    assert (change["reviewed_by"], change["on_behalf_of"]) == ("user-17", "root")


async def test_administrators_decide_as_admin_whomever_they_name(service: Service) -> None:
    added = {"id": "rooms", "name": "Rooms", "on_behalf_of": "ann"}
    await done(service.admin, "POST", "/skills", added)
    assert await who(service) == ("skill.add", "admin", "ann")
    await done(service.admin, "PUT", "/skills/rooms", {"name": "Meeting rooms"})
    assert await who(service) == ("skill.change", "admin", None)
    await done(service.admin, "PATCH", "/skills/rooms", {"is_active": False, "reviewer": "bob"})
    assert await who(service) == ("skill.deactivate", "admin", "bob")
    decided = await done(service.admin, "POST", f"/suggestions/{SUGGESTION}/reject", {"reviewer": "ann"})
    assert (decided["reviewed_by"], decided["on_behalf_of"]) == ("admin", "ann")
    assert await who(service) == ("suggestion.reject", "admin", "ann")


@pytest.mark.parametrize(
    ("claims", "actor"),
    [
        ({}, "acme"),
        ({"sub": ""}, "acme"),
        ({"sub": "admin"}, "token:admin"),
        ({"sub": "api"}, "token:api"),
        ({"sub": "toolscript migrate"}, "token:toolscript migrate"),
        ({"sub": "x" * 500}, "x" * 200),
    ],
)
async def test_no_token_decides_under_the_name_of_another_kind_of_client(
    service: Service, claims: dict[str, object], actor: str
) -> None:
    await done(client(service, **claims), "POST", "/curation", RULE)
    assert await who(service) == ("curation.add", actor, None)


@pytest.mark.parametrize(
    ("named", "actor"), [({"reviewer": "ann"}, "ann"), ({"on_behalf_of": "ann"}, "ann"), ({}, "api")]
)
async def test_where_nothing_authenticates_clients_their_own_word_is_the_actor(
    tmp_path: Path, named: Json, actor: str
) -> None:
    local = {"local": True, "environment": "development"}
    async with planted(tmp_path, **local) as service:
        await done(service.anonymous, "POST", "/curation", {**RULE, **named})
        entry = (await service.anonymous.got(f"{API}/audit?limit=1"))["results"][0]
    assert (entry["actor"], entry["on_behalf_of"]) == (actor, None)


@pytest.mark.parametrize("person", ["", "   ", "x" * 201])
async def test_a_person_without_a_name_is_refused(service: Service, person: str) -> None:
    before = await latest(service)
    for field in ("on_behalf_of", "reviewer"):
        answer = await service.admin.ask("POST", f"{API}/curation", {**RULE, field: person})
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "VALIDATION_ERROR")
    assert await latest(service) == before


async def test_every_audited_write_takes_the_person_under_both_names(service: Service) -> None:
    document = service.app.openapi()
    schemas = document["components"]["schemas"]
    lacking = []
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            audited = operation["tags"][0] in TAGS_AUDITED or path.endswith("/{tool_id}/skills")
            if method == "get" or "search" in path or not audited:
                continue
            body = (
                operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            )
            fields = schemas.get(body.get("$ref", "").rpartition("/")[2], {}).get("properties", {})
            names = {*fields, *(parameter["name"] for parameter in operation.get("parameters", []))}
            lacking += [f"{method} {path}"] if not {"on_behalf_of", "reviewer"} <= names else []
    assert lacking == []
