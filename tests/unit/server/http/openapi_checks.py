"""Checks of responses beyond the OpenAPI schema."""

import time
from typing import Any
from urllib.parse import urljoin

import httpx2
from schemathesis import Case, CheckContext, Response

from tests.unit.server.http.openapi_installation import ADMIN
from toolscript.tools.catalog.jobs import UNEXPECTED

SOON = 60.0
OPEN = ("queued", "running")


def a_sync_ends(ctx: CheckContext, response: Response, case: Case[Any]) -> bool | None:
    if response.status_code != 202:
        return True
    follow(urljoin(str(response.request.url), response.headers["location"][0]))
    return None


def follow(url: str) -> None:
    """Wait for the end of the job, so that there is room for another; it must not fail by a server error."""
    ends_at, headers = time.monotonic() + SOON, {"authorization": f"Bearer {ADMIN}"}
    while (job := httpx2.get(url, headers=headers, trust_env=False, verify=False).json())["state"] in OPEN:
        assert time.monotonic() < ends_at, f"{job} does not end"
    assert UNEXPECTED not in str(job["error"]), job
