"""No route is outside of what is tested for strangers: it is in OpenAPI, or known here by name."""

from collections.abc import Iterable, Iterator
from typing import Any, cast

import pytest

from tests.unit.server.composition.seen_app import settings_of, watched_app
from toolscript.server.observability import open_observability

pytestmark = pytest.mark.requirement("TR-004")

# Asked by tests/e2e/access one by one, or the same for everybody.
KNOWN = {"/docs", "/docs/reference.css", "/openapi.json", "/metrics"}


def paths(routes: Iterable[Any], prefix: str = "") -> Iterator[str]:
    """Of routers within routers as well, however the framework nests them."""
    for route in routes:
        within = getattr(route, "routes", None) or getattr(getattr(route, "original_router", None), "routes", None)
        if within:
            yield from paths(within, prefix)
        else:
            yield prefix + str(getattr(route, "path_format", None) or getattr(route, "path", route))


async def test_every_route_is_in_openapi_or_known_by_name() -> None:
    async with open_observability(settings_of({"metrics": True}), cast("Any", None)) as observability:
        app = watched_app(observability)
        found = set(paths(app.routes))
    described = set(app.openapi()["paths"])
    assert described <= found
    assert found - described == KNOWN
