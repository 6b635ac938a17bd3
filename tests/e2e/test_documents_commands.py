"""`toolscript documents` against `toolscript serve`, both as processes, on the real engines."""

import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.conftest import Installation
from tests.e2e import commands
from tests.e2e.tenants.service import SOON, Service, served

LOOK_EVERY_SECONDS = 0.02
MANY = 800


@pytest.fixture
def service(installation: Installation) -> Iterator[tuple[Service, dict[str, str]]]:
    """Yield the service, with the settings of the commands."""
    with served(installation) as (service, issuer):
        yield service, {"TOOLSCRIPT_SERVICE_URL": service.url, "TOOLSCRIPT_TOKEN": issuer.token("acme")}


def printed(mine: Mapping[str, str], *arguments: str, code: int = 0) -> list[Any]:
    """Return every line of JSON."""
    done = commands.run_here(mine, "documents", *arguments, "--json", code=code)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.requirement("DOC-001", "DOC-006", "DOC-007")
def test_a_folder_is_put_searched_walked_and_removed(
    service: tuple[Service, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(30):
        (folder / f"{number:02}.md").write_text(f"# Note {number}\n\nLighthouse number {number}.", "utf-8")
    mine = service[1]
    assert printed(mine, "put", "notes")[0]["created"] == 30
    assert printed(mine, "put", "notes")[0]["unchanged"] == 30
    best = printed(mine, "search", "lighthouse 7", "--filter", 'title="Note 7"')[0]["results"]
    assert [hit["id"] for hit in best] == ["notes/07.md"]
    pages = printed(mine, "search", "lighthouse", "--all", "--limit", "7")
    assert [len(page["results"]) for page in pages] == [7, 7, 7, 7, 2]
    assert len({hit["id"] for page in pages for hit in page["results"]}) == 30
    assert printed(mine, "get", "notes/07.md")[0]["text"] == "# Note 7\n\nLighthouse number 7."
    assert printed(mine, "delete", "notes/07.md", "nothing")[0]["missing"] == ["nothing"]
    printed(mine, "get", "notes/07.md", code=2)


def test_without_a_token_the_option_and_the_setting_are_named(service: tuple[Service, dict[str, str]]) -> None:
    without = {"TOOLSCRIPT_SERVICE_URL": service[1]["TOOLSCRIPT_SERVICE_URL"]}
    message = commands.run_here(without, "documents", "search", "x", code=2).stderr
    assert "hint: give a token with --token or TOOLSCRIPT_TOKEN" in message


@pytest.mark.nightly
@pytest.mark.requirement("DOC-006")
def test_a_service_that_is_killed_and_comes_back_gets_every_document(
    service: tuple[Service, dict[str, str]], tmp_path: Path
) -> None:
    running, mine = service
    rows = [{"id": f"d{number}", "text": f"Number {number}. " * 20} for number in range(MANY)]
    path = tmp_path / "many.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    putting = subprocess.Popen(
        commands.command("documents", "put", str(path), "--json", "--resume", str(tmp_path / "state.json")),
        env=commands.environment(mine),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for minimum in (1, 300):
        _until(lambda minimum=minimum: _count(running.url, mine) >= minimum)
        running.kill()
        running.start()
    output, message = putting.communicate(timeout=SOON)
    assert putting.returncode == 0, message
    assert "trying again in" in message
    report = json.loads(output)
    assert report["created"] + report["updated"] + report["unchanged"] == MANY
    assert report["refused"] == 0
    assert _count(running.url, mine) == MANY
    result = {hit["id"] for page in printed(mine, "search", "--all", "--limit", "200") for hit in page["results"]}
    assert result == {f"d{number}" for number in range(MANY)}


def _count(url: str, mine: Mapping[str, str]) -> int:
    headers = {"authorization": f"Bearer {mine['TOOLSCRIPT_TOKEN']}"}
    request = {"cursor": "*", "top_k": 1}
    answer = httpx2.post(
        f"{url}/search", json=request, headers=headers, trust_env=False, verify=False, timeout=SOON
    )
    return int(answer.json()["total"])


def _until(holds: Any) -> None:
    ends_at = time.monotonic() + SOON
    while not holds():
        assert time.monotonic() < ends_at
        time.sleep(LOOK_EVERY_SECONDS)
