"""A modern server may want a request again for as long as it works, without a question."""

from collections.abc import Mapping

import pytest

from tests.unit.core.mcp_client.relays import at_once
from toolscript.core.errors import ServerRejected
from toolscript.core.items import JsonObject
from toolscript.core.mcp_client import connection
from toolscript.core.mcp_client.connection import MAX_ROUNDS, Connection
from toolscript.core.mcp_client.exchanges import Exchange
from toolscript.core.mcp_client.relay import Relay

pytestmark = pytest.mark.requirement("TS-010")


class Working(Connection):
    """A connection whose server wants the request again, so many times."""

    def __init__(self, times: int, questions: JsonObject) -> None:
        self.left = times
        self.questions = questions

    async def _request(
        self, method: str, params: JsonObject, headers: Mapping[str, str] | None = None, relay: Relay | None = None
    ) -> JsonObject:
        if not self.left:
            return {"resultType": "complete", "state": params["requestState"]}
        self.left -= 1
        return {"resultType": "input_required", "inputRequests": self.questions, "requestState": str(self.left)}


async def test_rounds_without_a_question_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_STATE_ONLY_SECONDS", 0.0)
    working = Working(2 * MAX_ROUNDS, {})
    answer = await working._completed(Exchange(None, "working"), "tools/call", {}, {})
    assert answer["state"] == "0"


async def test_rounds_with_a_question_do() -> None:
    asked = at_once()
    working = Working(2 * MAX_ROUNDS, {"where": {"method": "roots/list", "params": {}}})
    with pytest.raises(ServerRejected, match=f"more than {MAX_ROUNDS}"):
        await working._completed(Exchange(asked, "working"), "tools/call", {}, {})
    assert len(asked.questions) == MAX_ROUNDS
