"""Routes beside those of the framework, known to logs and metrics by their template as those are."""

from starlette.routing import Match, Route
from starlette.types import Scope


class TemplatedRoute(Route):
    """The framework's routes leave themselves in the scope; plain ones do not."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, found = super().matches(scope)
        return match, {**found, "route": self} if found else found
