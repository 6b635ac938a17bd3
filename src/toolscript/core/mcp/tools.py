"""A tool of the service: its definition, its scope and what it calls."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from toolscript.core.auth.model import Identity, Scope
from toolscript.core.items import JsonObject
from toolscript.core.mcp_client.model import CallResult

OK, REFUSED, ERROR = "ok", "refused", "error"
# Method, tool (empty where none is called), outcome, seconds.
ObserveMcp = Callable[[str, str, str, float], None]

Call = Callable[[Identity, JsonObject], Awaitable[CallResult]]


@dataclass(frozen=True)
class ServiceTool:
    """`for_a_tenant`: on whose behalf it is called has to be known."""

    definition: JsonObject
    scope: Scope
    call: Call
    for_a_tenant: bool = False

    @property
    def name(self) -> str:
        return str(self.definition["name"])

    def is_for(self, identity: Identity) -> bool:
        return identity.may(self.scope) and (identity.principal is not None or not self.for_a_tenant)
