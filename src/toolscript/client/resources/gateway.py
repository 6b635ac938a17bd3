"""Searches and calls of a gateway, by the paths and with the fields of its source document."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from toolscript.client.answers.tools import GatewayCallResult, GatewaySearchAnswer
from toolscript.client.exchange import Request, Steps
from toolscript.client.resource import M_co, Resource, operation, query_of, step_of, values_of
from toolscript.client.resources.tools import Kind, Risk, SearchType

# How long a tool may take.
CALL_SECONDS = 600.0


class Gateway(Resource[M_co]):
    @operation
    def search(
        self,
        query: str,
        *,
        limit: int | None = None,
        kind: Kind | Literal["any"] | None = None,
        threshold: float | None = None,
        search_type: SearchType | None = None,
        server: str | Sequence[str] | None = None,
        why_not: str | None = None,
        log: bool | None = None,
        explain: bool | None = None,
        schemas: bool | None = None,
    ) -> Steps[GatewaySearchAnswer]:
        """Search the tools of a gateway. None leaves it to the gateway.

        `why_not` names a tool, and the answer says why it is not among the results. With `log` false, the search
        is not in the activity log.
        """
        asked = {
            "q": query,
            "limit": limit,
            "kind": kind,
            "threshold": threshold,
            "search_type": search_type,
            "server": values_of(server),
            "why_not": why_not,
            "log": log,
            "explain": explain,
            "schemas": schemas,
        }
        return self._ask("GET", "/search", GatewaySearchAnswer, query=asked)

    @operation
    def call(
        self,
        tool_id: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        confirm: bool | None = None,
        max_risk: Risk | None = None,
        timeout: float = CALL_SECONDS,
    ) -> Steps[GatewayCallResult]:
        """Call a tool, once: the call is never repeated. A tool that fails sets `isError`.

        `confirm` says that a person confirms the call, where a rule asks for it; a tool above `max_risk` is not
        called. Both, and what a rule denies, raise `Forbidden`.
        """
        return self._ask(
            "POST",
            f"/tools/{step_of(tool_id)}",
            GatewayCallResult,
            body=dict(arguments or {}),
            query={"confirm": confirm, "max_risk": max_risk},
            idempotent=False,
            timeout=timeout,
            with_null=True,
        )

    @operation
    def types(self, names: Sequence[str] = (), *, compact: bool = False) -> Steps[str]:
        """Return a TypeScript module for tools of a gateway: of these servers and `server__tool`s, else of all."""
        query = query_of({"filter": ",".join(names), "compact": compact})
        return self._conversation.ask(Request("GET", f"/runtime/tools.ts{query}"), bytes.decode)
