"""Another model for documents while tenants search and write: nothing fails, nothing is lost, nothing is mixed."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx2
import pytest

from tests.conftest import Installation
from tests.e2e.commands import run, run_here
from tests.e2e.tenants.clients import Client, again_and_again
from tests.e2e.tenants.service import SOON, Service, served
from tests.support.audit_entries import by_me
from tests.support.token_issuer import Issuer

TENANTS = ("acme", "zeta")
TOPICS = ("lighthouses", "espresso machines", "tax returns", "violins", "glaciers", "chess openings")
QUERIES = ("how is coffee made", "ships at night", "ice that moves", "a game on a board")

# One entry each, in the order in which the test makes them.
SWITCHES = ("index.switch", "index.roll_back", "index.drop")


def write(client: Client, puts: list[str]) -> None:
    number = len(puts)
    client.put(**{f"new{number}": f"number {number}", "changing": f"version {number}"})
    puts.append(f"new{number}")
    client.remove(f"new{number - 2}")


@contextmanager
def filled(service: Service, issuer: Issuer) -> Iterator[dict[str, Client]]:
    with ExitStack() as stack:
        clients = {name: stack.enter_context(Client(service.url, issuer.token(name))) for name in TENANTS}
        for name, client in clients.items():
            client.put(
                **{f"d{index}": f"All about {topic}, for {name}. " * 30 for index, topic in enumerate(TOPICS)}
            )
        yield clients


def found_by(
    client: Client, is_expected: Callable[[dict[str, tuple[Any, ...]]], bool]
) -> dict[str, tuple[Any, ...]]:
    """Return the results once the server has switched to the new version."""
    ends_at = time.monotonic() + SOON
    while time.monotonic() < ends_at:
        if is_expected(now := {query: tuple(client.find(query)) for query in QUERIES}):
            return now
        time.sleep(0.2)
    raise AssertionError("the server goes on with the version before")


def reindex(service: Service, *arguments: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(
        run(service.environment, "reindex", "documents", *arguments, "--json").stdout
    )
    return result


@contextmanager
def local(installation: Installation, model: str) -> Iterator[tuple[Service, Issuer]]:
    with served(
        installation,
        TOOLSCRIPT_EMBEDDING_URL="",
        TOOLSCRIPT_EMBEDDING_MODEL=model,
        TOOLSCRIPT_EMBEDDING_DIMENSIONS="384",
    ) as running:
        yield running


@pytest.mark.nightly
@pytest.mark.requirement("DOC-006", "SK-003")
def test_a_change_of_model_fails_no_request_loses_no_write_and_can_be_taken_back(
    installation: Installation, model_folder: str, other_model: str
) -> None:
    with local(installation, model_folder) as (service, issuer), filled(service, issuer) as clients:
        acme, zeta = clients["acme"], clients["zeta"]
        before = {query: tuple(zeta.find(query)) for query in QUERIES}
        answers: list[tuple[str, tuple[Any, ...]]] = []
        puts: list[str] = []
        with (
            again_and_again(lambda: write(acme, puts)),
            again_and_again(lambda: answers.extend((query, tuple(zeta.find(query))) for query in QUERIES)),
        ):
            done = reindex(service, "--model", other_model, "--share", "1")
        kept = {*puts[-2:], "changing", *(f"d{index}" for index in range(len(TOPICS)))}
        after = found_by(zeta, lambda now: now != before)
        assert [answer for answer in answers if answer[1] not in (before[answer[0]], after[answer[0]])] == []
        assert (acme.ids(), done["left_out"]) == (kept, [])

        back = reindex(service, "--rollback", "--share", "1")
        assert (back["live"], back["previous"]) == (done["previous"], done["live"])
        found_by(zeta, lambda now: now == before)
        assert acme.ids() == kept
        assert reindex(service, "--drop-previous") == {"dropped": done["live"]}
        assert acme.ids() == kept
        assert by_me(service.environment, *SWITCHES) == [(action, 1) for action in SWITCHES]


@pytest.mark.nightly
@pytest.mark.requirement("SK-003")
def test_documents_of_another_model_stop_nothing(
    installation: Installation, model_folder: str, other_model: str
) -> None:
    """Tools use a new model, documents still the previous one, and both are served."""
    with local(installation, model_folder) as (service, issuer), filled(service, issuer) as clients:
        before = {query: clients["zeta"].find(query) for query in QUERIES}
        service.stop()
        service.environment = {**service.environment, "TOOLSCRIPT_EMBEDDING_MODEL": other_model}
        run_here(service.environment, "reindex")
        service.start()
        assert {query: clients["zeta"].find(query) for query in QUERIES} == before
        assert httpx2.get(f"{service.url}/readyz", trust_env=False, verify=False).status_code == 200
        clients["zeta"].put(more="put while the models differ")
        assert "more" in clients["zeta"].ids()
