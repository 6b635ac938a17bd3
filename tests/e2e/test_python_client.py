"""The Python clients and a real service that is killed while documents are put."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.conftest import Installation, fresh_database, fresh_installation
from tests.e2e.tenants.service import Service, served
from tests.e2e.tenants.stored_points import everything, problems
from tests.support.token_issuer import Issuer
from toolscript import AsyncClient, Client, NotFound
from toolscript.client.answers.documents import PutAnswer
from toolscript.client.exchange import Pause
from toolscript.core.settings.service import Settings

pytestmark = pytest.mark.requirement("AP-002")

MANY = 500
# 200 documents are a request: it is sent when one more is taken.
BETWEEN_REQUESTS, SENDING_THE_SECOND = 300, 400
OF_THE_SECOND = "d200"

Put = Callable[["Killed"], PutAnswer]


@pytest.fixture(scope="module")
def installed(engines: Settings, migrated_database: str, model_folder: str) -> Iterator[Installation]:
    with (
        fresh_database(engines, migrated_database) as url,
        fresh_installation(engines, url, model_folder) as installation,
    ):
        yield installation


@pytest.fixture(scope="module")
def service(installed: Installation) -> Iterator[tuple[Service, Issuer]]:
    with served(installed) as running:
        yield running


@dataclass
class Killed:
    """A service that is killed when so many documents were taken, and starts again when a client waits for it."""

    service: Service
    token: str
    kill_at: int
    retried: list[Pause] = field(default_factory=list)
    killing: threading.Thread | None = None

    @property
    def options(self) -> dict[str, Any]:
        return {"url": self.service.url, "token": self.token, "on_retry": self.on_retry}

    def documents(self) -> Iterator[dict[str, str]]:
        for number in range(MANY):
            if number == self.kill_at == BETWEEN_REQUESTS:
                self.service.kill()
            elif number == self.kill_at:
                self.killing = threading.Thread(target=self._kill_when_storing)
                self.killing.start()
            yield {"id": f"d{number}", "text": f"Lighthouse number {number}."}

    async def documents_async(self) -> AsyncIterator[dict[str, str]]:
        for document in self.documents():
            yield document

    def on_retry(self, pause: Pause) -> None:
        self.retried.append(pause)
        if self.killing is not None:
            self.killing.join()
        if self.service.process is None:
            self.service.start()

    def _kill_when_storing(self) -> None:
        with Client(self.service.url, token=self.token) as client:
            while True:
                try:
                    client.documents.get(OF_THE_SECOND)
                except NotFound:
                    continue
                break
        self.service.kill()


def put(killed: Killed) -> PutAnswer:
    with Client(**killed.options) as client:
        return client.documents.put(killed.documents())


def put_async(killed: Killed) -> PutAnswer:
    async def run() -> PutAnswer:
        async with AsyncClient(**killed.options) as client:
            return await client.documents.put(killed.documents_async())

    return asyncio.run(run())


@pytest.mark.parametrize("kill_at", [BETWEEN_REQUESTS, SENDING_THE_SECOND])
@pytest.mark.parametrize("put_many", [put, put_async])
def test_a_put_stores_every_document_once_although_the_service_is_killed(
    installed: Installation, service: tuple[Service, Issuer], put_many: Put, kill_at: int
) -> None:
    running, issuer = service
    tenant = f"{put_many.__name__}-{kill_at}".replace("_", "-")
    killed = Killed(running, issuer.token(tenant), kill_at)
    answer = put_many(killed)
    assert killed.retried, "the client met the killed service"
    assert [result.id for result in answer.results] == [f"d{number}" for number in range(MANY)]
    # What was stored without an acknowledgement is found unchanged.
    assert answer.counts.created + answer.counts.unchanged == MANY
    assert answer.counts.unchanged <= (0 if kill_at == BETWEEN_REQUESTS else 200)
    in_engine = asyncio.run(everything(installed.settings))
    assert problems(in_engine) == []
    assert sum(name == tenant for name, _ in in_engine) == MANY
    with Client(running.url, token=killed.token) as client:
        stored = list(client.documents.list(page_size=100))
        assert sorted(document.id for document in stored) == sorted(f"d{number}" for number in range(MANY))
        again = client.documents.put({"id": f"d{n}", "text": f"Lighthouse number {n}."} for n in range(MANY))
        assert again.counts.unchanged == MANY
