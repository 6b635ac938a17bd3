"""What clients are told of an engine's error, and what the log keeps."""

import logging

import httpx2
import pytest
from fastapi import FastAPI

from toolscript.core.errors import (
    CatalogUnavailable,
    EmbedderRejected,
    IndexLost,
    IndexUnavailable,
    NotFound,
    ToolscriptError,
    told_to_clients,
)
from toolscript.core.web.errors import install_error_handlers

pytestmark = pytest.mark.requirement("API-003")
DOWN = IndexUnavailable(
    "Qdrant: failed to connect to all addresses; last error: UNKNOWN: ipv4:10.1.2.3:6334",
    hint="is TOOLSCRIPT_QDRANT_URL right?",
)


async def test_clients_are_told_that_an_engine_does_not_answer_and_the_log_has_the_address(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = FastAPI()
    install_error_handlers(app)

    @app.get("/")
    async def fail() -> None:
        raise DOWN

    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1") as client:
        with caplog.at_level(logging.WARNING):
            answer = await client.get("/")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.json()["error"]["message"] == "an engine does not answer"
    assert "10.1.2.3" not in answer.text
    assert "QDRANT" not in answer.text
    assert "10.1.2.3" in str([vars(record) for record in caplog.records])


@pytest.mark.parametrize(
    "error", [CatalogUnavailable("PostgreSQL: 10.1.2.3 refused"), EmbedderRejected("embedding endpoint: 10.1.2.3")]
)
def test_the_kind_of_error_stays(error: ToolscriptError) -> None:
    told = told_to_clients(error)
    assert type(told) is type(error)
    assert "10.1.2.3" not in f"{told.message} {told.hint}"


@pytest.mark.parametrize("error", [NotFound("there is no tool 7"), IndexLost("the documents are lost")])
def test_our_own_words_are_told_as_they_are(error: ToolscriptError) -> None:
    assert told_to_clients(error) is error
