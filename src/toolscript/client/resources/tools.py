"""Tools of a service or gateway; the MCP servers of a gateway, and what was searched and called there."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from toolscript.client.answers.tools import (
    ActivityEntry,
    CallResult,
    ItemSkills,
    Review,
    ReviewDecision,
    Server,
    Tool,
    ToolSearchAnswer,
)
from toolscript.client.exchange import Request, Steps
from toolscript.client.resource import (
    PREFIX,
    Listing,
    M_co,
    Resource,
    listing,
    operation,
    query_of,
    step_of,
    values_of,
)

TOOLS, SERVERS, ACTIVITY = f"{PREFIX}/tools", f"{PREFIX}/servers", f"{PREFIX}/activity"
REVIEWS = f"{PREFIX}/reviews"
# How long a tool may take.
CALL_SECONDS = 600.0

Kind = Literal["tool", "prompt", "resource"]
SearchType = Literal["semantic", "keyword", "hybrid"]
Strategy = Literal["hierarchical", "direct", "hybrid"]
Preset = Literal["precision", "balanced", "recall"]
Risk = Literal["read", "write", "destructive"]
Status = Literal["new", "changed", "rejected"]
Outcome = Literal["running", "ok", "error", "unknown", "refused"]


class Tools(Resource[M_co]):
    @operation
    def search(
        self,
        query: str,
        *,
        limit: int | None = None,
        kind: Kind | Literal["any"] | None = None,
        threshold: float | None = None,
        search_type: SearchType | None = None,
        include_schemas: bool | None = None,
        explain: bool | None = None,
        preset: Preset | None = None,
        strategy: Strategy | None = None,
        skill_ids: Sequence[str] | None = None,
        skill_limit: int | None = None,
        skill_threshold: float | None = None,
        why_not: str | None = None,
        servers: Sequence[str] | None = None,
        namespaces: Sequence[str] | None = None,
    ) -> Steps[ToolSearchAnswer]:
        """Search tools. None leaves it to the server. `kind="any"` is for a gateway, `preset` etc. a service."""
        body = {
            "query": query,
            "limit": limit,
            "kind": kind,
            "threshold": threshold,
            "search_type": search_type,
            "include_schemas": include_schemas,
            "explain": explain,
            "preset": preset,
            "strategy": strategy,
            "skill_ids": None if skill_ids is None else list(skill_ids),
            "skill_limit": skill_limit,
            "skill_threshold": skill_threshold,
            "why_not": why_not,
            "servers": None if servers is None else list(servers),
            "namespaces": None if namespaces is None else list(namespaces),
        }
        return self._ask("POST", f"{TOOLS}/search", ToolSearchAnswer, body=body)

    @listing
    def list(
        self,
        *,
        kind: Kind | None = None,
        server: str | Sequence[str] | None = None,
        source: str | None = None,
        namespace: str | None = None,
        include_schemas: bool | None = None,
        page_size: int | None = None,
        cursor: str = "",
    ) -> Listing[Tool]:
        """List tools. `source` and `namespace` are for a service, the others for a gateway, too.

        Several servers and `include_schemas` are for a gateway alone.
        """
        of_service = {"source": source, "namespace": namespace}
        more = {"kind": kind, "server": values_of(server), "include_schemas": include_schemas, **of_service}
        return self._listing(TOOLS, Tool, page_size, cursor, **more)

    @operation
    def get(self, tool_id: int | str, *, kind: Kind | None = None) -> Steps[Tool]:
        """Return a tool with its schemas: by number from a service, by `server__tool` from a gateway.

        `kind` is for a gateway, where a prompt may have the name of a tool.
        """
        return self._ask("GET", f"{TOOLS}/{step_of(tool_id)}", Tool, query={"kind": kind})

    @operation
    def call(
        self,
        tool_id: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        confirm: bool | None = None,
        max_risk: Risk | None = None,
        timeout: float = CALL_SECONDS,
    ) -> Steps[CallResult]:
        """Call a tool of a gateway, once: the call is never repeated. A tool that fails sets `is_error`.

        `confirm` says that a person confirms the call, where a rule asks for it; a tool above `max_risk` is not
        called. Both, and what a rule denies, raise `Forbidden`.
        """
        body = {"id": tool_id, "arguments": dict(arguments or {}), "confirm": confirm, "max_risk": max_risk}
        return self._ask("POST", f"{TOOLS}/call", CallResult, body=body, idempotent=False, timeout=timeout)

    @operation
    def types(self, names: Sequence[str] = (), *, compact: bool = False) -> Steps[str]:
        """Return a TypeScript module for tools of a gateway: of these servers and `server__tool`s, else of all."""
        query = query_of({"filter": ",".join(names), "compact": compact})
        return self._conversation.ask(Request("GET", f"/runtime/tools.ts{query}"), bytes.decode)

    @operation
    def delete(self, tool_id: int) -> Steps[None]:
        """Remove a tool from the catalog of a service."""
        return self._conversation.ask(Request("DELETE", f"{TOOLS}/{step_of(tool_id)}"), lambda _: None)

    @operation
    def get_skills(self, tool_id: int) -> Steps[ItemSkills]:
        """Return the skills of a tool of a service."""
        return self._ask("GET", f"{TOOLS}/{step_of(tool_id)}/skills", ItemSkills)

    @operation
    def set_skills(
        self, tool_id: int, skill_ids: Sequence[str], *, on_behalf_of: str | None = None
    ) -> Steps[ItemSkills]:
        """Decide the skills of a tool; no classifier changes them then."""
        body = {"skill_ids": [*skill_ids], "on_behalf_of": on_behalf_of}
        return self._ask("PUT", f"{TOOLS}/{step_of(tool_id)}/skills", ItemSkills, body=body)

    @operation
    def release_skills(self, tool_id: int, *, on_behalf_of: str | None = None) -> Steps[ItemSkills]:
        """Leave the skills of a tool to the classifier again."""
        query = {"on_behalf_of": on_behalf_of}
        return self._ask("DELETE", f"{TOOLS}/{step_of(tool_id)}/skills", ItemSkills, query=query)


class Servers(Resource[M_co]):
    @listing
    def list(self, *, page_size: int | None = None, cursor: str = "") -> Listing[Server]:
        """List the MCP servers of a gateway, with their states."""
        return self._listing(SERVERS, Server, page_size, cursor)


class Activity(Resource[M_co]):
    @listing
    def list(
        self,
        *,
        server: str | None = None,
        tool: str | None = None,
        client: str | None = None,
        outcome: Outcome | None = None,
        page_size: int | None = None,
        cursor: str = "",
    ) -> Listing[ActivityEntry]:
        """List searches and calls of a gateway, the newest first. `tool` is a name, or `server__tool`."""
        filters = {"server": server, "tool": tool, "client": client, "outcome": outcome}
        return self._listing(ACTIVITY, ActivityEntry, page_size, cursor, **filters)


class Reviews(Resource[M_co]):
    @listing
    def list(
        self,
        *,
        server: str | None = None,
        status: Status | None = None,
        page_size: int | None = None,
        cursor: str = "",
    ) -> Listing[Review]:
        """List the definitions of a gateway's servers that are not approved, in order of server and name."""
        return self._listing(REVIEWS, Review, page_size, cursor, server=server, status=status)

    @operation
    def approve(self, digests: Sequence[str]) -> Steps[ReviewDecision]:
        """Approve exactly these definitions, once a person has reviewed them. It needs the gateway's token."""
        return self._ask("POST", f"{REVIEWS}/approve", ReviewDecision, body={"digests": [*digests]})

    @operation
    def reject(self, digests: Sequence[str]) -> Steps[ReviewDecision]:
        """Keep exactly these definitions out, until they change again. It needs the gateway's token."""
        return self._ask("POST", f"{REVIEWS}/reject", ReviewDecision, body={"digests": [*digests]})
