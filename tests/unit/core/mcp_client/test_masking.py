"""Secrets of a server's entry are masked."""

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
def test_a_secret_is_masked_everywhere(secret: str) -> None:
    assert masked(f"<{secret}> {secret}", SPEC) == "<***> ***"


def test_a_value_that_is_no_secret_stays() -> None:
    assert masked("visible-folder 1 --api-key DEBUG", SPEC) == "visible-folder 1 --api-key DEBUG"


def test_an_invalid_address_is_masked_whole() -> None:
    assert masked("no http://[oops", ServerSpec("bad", Transport.HTTP, url="http://[oops")) == "no ***"
