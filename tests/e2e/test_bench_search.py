"""`benchmarks search` under load, on a small catalog: processes, results, the plot, and invalid options."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.conftest import Installation, fresh_database, fresh_installation
from tests.e2e import catalog_files
from tests.e2e.commands import WAIT_SECONDS, command, environment, run, run_here
from toolscript.core.settings.service import Settings

USUAL = ("bench", "search", "--count", "40", "--json")


@pytest.fixture(scope="module")
def indexed(
    engines: Settings, migrated_database: str, model_folder: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """An installation whose items are in skills."""
    file = tmp_path_factory.mktemp("catalog") / "items.jsonl"
    with (
        fresh_database(engines, migrated_database) as url,
        fresh_installation(engines, url, model_folder) as installation,
    ):
        run_here(installation.environment, "migrate")
        run_here(installation.environment, "sync", str(catalog_files.write(file, catalog_files.rows(160))))
        run_here(installation.environment, "worker", "--drain")
        yield installation.environment


@pytest.mark.nightly
def test_at_rising_load_both_are_measured_in_turn_and_drawn(indexed: dict[str, str], tmp_path: Path) -> None:
    picture = tmp_path / "load.svg"
    arguments = ("--load", "--rates", "4,8", "--step-seconds", "1", "--plot", str(picture))
    done = json.loads(run(indexed, *USUAL, *arguments).stdout)
    assert (done["strategy"], done["queries"], done["cached"]) == ("hierarchical", 40, False)
    for name in ("ours", "bare"):
        first = done[name]["steps"][0]
        assert (first["offered"], first["requests"], first["errors"]) == (4.0, 4, {})
        assert 0 < first["p50_ms"] <= first["p95_ms"] <= first["max_ms"]
        assert {"embedding", "skills", "index", "details"} <= {stage["name"] for stage in first["stages"]}
        assert done[name]["throughput"] > 0
    assert done["ours"]["steps"][0]["strategies"] == {"hierarchical": 4}
    assert set(done["ours"]["steps"][0]["cpu_ms"]) == {"generator", "search"}
    assert done["throughput_ratio"] > 0
    assert ET.parse(picture).getroot().tag.endswith("svg")


@pytest.mark.nightly
def test_a_sustained_rate_is_reported_by_minute(indexed: dict[str, str]) -> None:
    done = run(indexed, *USUAL[:-1], "--strategy", "hybrid", "--rate", "5", "--seconds", "2")
    assert "strategy hybrid, 40 different queries in turn, each embedded every time" in done.stdout
    rows = {line.split()[0]: line for line in done.stdout.splitlines()[2:]}
    assert rows["whole"].split()[7] == "0", done.stdout
    assert "hybrid: 10" in rows["minute"]


@pytest.mark.nightly
def test_one_at_a_time_every_stage_has_its_bare_counterpart(indexed: dict[str, str]) -> None:
    done = json.loads(run(indexed, *USUAL).stdout)
    bare, ours = ({stage["name"] for stage in done[which]} for which in ("parts", "stages"))
    assert bare == {"embedding", "skills", "index", "details", "http"}
    assert ours == bare | {"ranking"}
    assert done["p95_ratio"] == round(done["ours"]["p95_ms"] / done["bare"]["p95_ms"], 3)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--load", "--rate", "5"), "two benchmarks"),
        (("--plot", "x.svg"), "needs --load"),
        (("--load", "--rates", "1,two"), "is not a list of rates"),
        (("--load", "--plot", "no/such/folder/x.svg"), "there is no folder"),
        (("--load", "--most", "2"), "use --least"),
    ],
)
def test_conflicting_options_are_refused_before_anything_starts(
    installation: Installation, arguments: tuple[str, ...], said: str
) -> None:
    assert said in run_here(installation.environment, "bench", "search", *arguments, code=2).stderr


def test_a_server_that_cannot_search_is_named_with_what_to_run(installation: Installation, tmp_path: Path) -> None:
    queries = tmp_path / "queries.jsonl"
    queries.write_text("".join(json.dumps({"text": f"query {number}"}) + "\n" for number in range(30)))
    done = run(installation.environment, "bench", "search", "--queries", str(queries), "--rate", "5", code=2)
    assert "status 503" in done.stderr
    assert "toolscript serve" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_terminated_benchmark_ends_its_server(indexed: dict[str, str]) -> None:
    arguments = command("bench", "search", "--rate", "2", "--seconds", "600")
    with subprocess.Popen(arguments, env=environment(indexed), stderr=subprocess.DEVNULL) as bench:
        children = _until_it_has_children(bench)
        bench.send_signal(signal.SIGTERM)
        assert bench.wait(timeout=WAIT_SECONDS) == 128 + signal.SIGTERM
    assert [child for child in children if Path(f"/proc/{child}").exists()] == []


def _until_it_has_children(process: subprocess.Popen[bytes]) -> list[str]:
    ends_at = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < ends_at and process.poll() is None:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        if children:
            return children
        time.sleep(0.05)
    raise AssertionError("the bench started nothing")
