"""A gateway whose calls go through rules: the double, with the engine before it, as the real gateway has it."""

from dataclasses import dataclass, field
from typing import Any

from tests.unit.gateway.mcp.gateway_double import GatewayDouble
from toolscript.core.items import JsonObject, tool_id
from toolscript.core.mcp_client.model import CallResult
from toolscript.gateway.callers import current_client, current_terms
from toolscript.gateway.model import LocalAnswer, LocalQuery
from toolscript.gateway.rules import CallRules, Risk, require_allowed


@dataclass
class RuledGateway(GatewayDouble):
    rules: CallRules = field(default_factory=CallRules)

    async def search(self, query: LocalQuery) -> LocalAnswer:
        return (await super().search(query)).with_risks(self.rules.risk)

    async def call(self, tool: str, arguments: JsonObject) -> CallResult:
        terms = current_terms()
        item = next(item for item in self.found if tool_id(item.server, item.name) == tool)
        require_allowed(
            self.rules.decide(item, current_client()),
            item,
            confirmed=terms.confirmed == tool,
            limit=Risk(terms.max_risk) if terms.max_risk else None,
        )
        return await super().call(tool, arguments)


def form_answer(action: str, asked: list[Any]) -> Any:
    """Return a client's answer to every form, which notes what it was asked."""
    from mcp_types import ElicitResult

    async def answer(_context: object, params: Any) -> ElicitResult:
        asked.append(params)
        return ElicitResult(action=action)  # type: ignore[arg-type]

    return answer
