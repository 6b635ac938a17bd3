"""Every route is covered by tests of anonymous access: it is in OpenAPI, or listed here."""

from collections.abc import Iterable, Iterator
from typing import Any, cast

import pytest

from tests.unit.server.composition.observed_app import observed_app, settings_of
from toolscript.server.observability import open_observability

pytestmark = pytest.mark.requirement("TR-004")

# Tested one by one in tests/e2e/access, or public.
KNOWN = {"/docs", "/docs/reference.css", "/openapi.json", "/metrics"}


def paths(routes: Iterable[Any], prefix: str = "") -> Iterator[str]:
    """Return the paths, also of nested routers."""
    for route in routes:
        within = getattr(route, "routes", None) or getattr(getattr(route, "original_router", None), "routes", None)
        if within:
            yield from paths(within, prefix)
        else:
            yield prefix + str(getattr(route, "path_format", None) or getattr(route, "path", route))


async def test_every_route_is_in_openapi_or_known_by_name() -> None:
    async with open_observability(settings_of({"metrics": True}), cast("Any", None)) as observability:
        app = observed_app(observability)
        result = set(paths(app.routes))
    described = set(app.openapi()["paths"])
    assert described <= result
    assert result - described == KNOWN
