"""Rate limits behind a proxy: forwarded headers are trusted from configured proxies only."""

from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.conftest import Installation
from tests.e2e import catalog_files
from tests.e2e.access.proxies import EVERY_NGINX, nginx
from tests.e2e.commands import run_here, serving

pytestmark = pytest.mark.requirement("TR-004")

A_MINUTE = 3
# A new minute may start meanwhile.
MORE_THAN_TWO_MINUTES_ALLOW = 2 * A_MINUTE + 1
NAME = "search.example.com"


@pytest.fixture
def limited(installation: Installation, tmp_path: Path) -> dict[str, str]:
    run_here(installation.environment, "sync", str(catalog_files.write(tmp_path / "items", catalog_files.rows(1))))
    run_here(installation.environment, "worker", "--drain")
    return {
        **installation.environment,
        "TOOLSCRIPT_PUBLIC_REQUESTS_PER_MINUTE": str(A_MINUTE),
        "TOOLSCRIPT_PUBLIC_URL": f"https://{NAME}",
    }


def statuses(url: str, count: int, client: str = "127.0.0.1", spoofs: bool = True) -> list[int]:
    """Return the statuses of requests from one local address that forges another one each time."""
    transport = httpx2.HTTPTransport(local_address=client, verify=False)
    with httpx2.Client(transport=transport, timeout=60) as item:
        message = [
            {"Host": NAME, **({"X-Forwarded-For": f"203.0.113.{n}"} if spoofs else {})} for n in range(count)
        ]
        return [item.get(f"{url}/sources", headers=headers).status_code for headers in message]


def test_forged_addresses_count_as_one_client(limited: dict[str, str]) -> None:
    with serving(limited) as url, nginx(url, EVERY_NGINX) as through:
        assert set(through) >= {"nginx, plain"}
        for address in (url, *through.values()):
            assert 429 in statuses(address, MORE_THAN_TWO_MINUTES_ALLOW), address


def test_clients_of_a_trusted_proxy_are_counted_by_their_own_address(limited: dict[str, str]) -> None:
    named = {**limited, "TOOLSCRIPT_TRUSTED_PROXIES": "127.0.0.1", "TOOLSCRIPT_PROCESSES": "2"}
    documented = {"documented": EVERY_NGINX["nginx, as documented"]}
    with serving(named) as url, nginx(url, documented) as through:
        address = through["documented"]
        assert urlsplit(address).hostname == "127.0.0.1"
        assert 429 in statuses(address, MORE_THAN_TWO_MINUTES_ALLOW, "127.0.0.2")
        assert 429 not in statuses(address, 1, "127.0.0.3")
