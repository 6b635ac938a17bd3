"""A service that leaks on purpose, to verify that the tests detect leaks: `python -m` this.

    python -m tests.e2e.tenants.leaky_service filter serve --port 8080

`filter`: requests to the engine have no tenant filter; the check of results still refuses foreign ones.
`all`: that check is bypassed, too.
"""

import sys
from typing import Any

from toolscript.__main__ import main
from toolscript.core.qdrant import wire
from toolscript.documents.qdrant.tenant_points import TENANT, TenantPoints

LEAKS = ("filter", "all")

_really_call = TenantPoints._call


def _everybodys(_: TenantPoints, where: wire.Filter) -> wire.Filter:
    return where


async def _taken_for_own(self: TenantPoints, method: str, request: object) -> Any:
    answer = await _really_call(self, method, request)
    for point in answer.result if method == "Scroll" else ():
        point.payload[TENANT].string_value = self.tenant.name
    return answer


def leak(what: str) -> None:
    assert what in LEAKS, what
    TenantPoints._tenant_filter = _everybodys  # type: ignore[method-assign, assignment]
    if what == "all":
        TenantPoints._call = _taken_for_own  # type: ignore[method-assign]


if __name__ == "__main__":
    leak(sys.argv[1])
    sys.argv = ["toolscript", *sys.argv[2:]]
    main()
