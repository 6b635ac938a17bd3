"""A tool of the service: definition, required scope and handler."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from toolscript.core.auth.model import Identity, Scope
from toolscript.core.items import JsonObject
from toolscript.core.mcp_client.model import CallResult

OK, REFUSED, ERROR = "ok", "refused", "error"
# Arguments: method, tool (empty if none is called), outcome, seconds.
ObserveMcp = Callable[[str, str, str, float], None]

Call = Callable[[Identity, JsonObject], Awaitable[CallResult]]


@dataclass(frozen=True)
class ServiceTool:
    """`needs_tenant`: the tool requires a tenant, that is, a token."""

    definition: JsonObject
    scope: Scope
    call: Call
    needs_tenant: bool = False

    @property
    def name(self) -> str:
        return str(self.definition["name"])

    def is_allowed_for(self, identity: Identity) -> bool:
        return identity.may(self.scope) and (identity.principal is not None or not self.needs_tenant)
