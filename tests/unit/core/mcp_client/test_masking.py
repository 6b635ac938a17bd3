"""Secrets of a server's entry do not show."""

import pytest

from toolscript.core.mcp_client.model import ServerSpec, Transport, masked

pytestmark = pytest.mark.requirement("TS-001")

SPEC = ServerSpec(
    "secret",
    Transport.STDIO,
    args=("--api-key", "from-a-flag", "--token=from-equals", "--folder", "visible-folder"),
    env={"TOKEN": "from-env", "DEBUG": "1"},
    headers={"Authorization": "Bearer from-header"},
    url="https://user:from-userinfo@example.org/mcp?key=from-query",
)


@pytest.mark.parametrize(
    "secret",
    ["from-a-flag", "from-equals", "from-env", "from-header", "Bearer from-header", "from-userinfo", "from-query"],
)
def test_a_secret_is_masked_wherever_it_stands(secret: str) -> None:
    assert masked(f"<{secret}> {secret}", SPEC) == "<***> ***"


def test_what_is_no_secret_stays() -> None:
    assert masked("visible-folder 1 --api-key DEBUG", SPEC) == "visible-folder 1 --api-key DEBUG"


def test_an_address_that_is_none_is_masked_whole() -> None:
    assert masked("no http://[oops", ServerSpec("bad", Transport.HTTP, url="http://[oops")) == "no ***"
