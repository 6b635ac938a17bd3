"""The dashboard, the alerts and what Prometheus is told ask for figures that exist, with labels that they have."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.repo.sources import ROOT
from tests.unit.server.composition.seen_app import put_two, watched
from tests.unit.server.metrics.shown_metrics import shown
from toolscript.core.observability.routes import METRICS_PATH
from toolscript.server.metrics import OUTCOMES, PRODUCTS, STAGES

pytestmark = [pytest.mark.requirement("DOC-007")]

FOLDER = ROOT / "deploy" / "observability"
NAME = re.compile(r"\btoolscript_\w+")
MATCHER = re.compile(r'\b(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"')
GROUPING = re.compile(r"\bby \(([^)]*)\)")
GROUPED = re.compile(r"\bby \(([^)]*)\)\s*\((?:\w+\()?(toolscript_\w+)")
METRIC_WITH_LABELS = re.compile(r"(toolscript_\w+)(\{[^}]*\})?")
# Prometheus adds these itself.
ADDED = {"job", "instance"}
METRIC_ROW = re.compile(r"^\| `(toolscript_\w+)` \| \w+ \| ([^|]*) \|", re.MULTILINE)
LABEL = re.compile(r"`(\w+)`")
OF_WORKERS = "toolscript_worker_"
# To be looked up, not watched.
NOWHERE = {
    "toolscript_build_info",
    "toolscript_mcp_request_seconds",
    "toolscript_mcp_requests_total",
    "toolscript_postgres_pool_connections_max",
}


def dashboard() -> Any:
    return json.loads((FOLDER / "dashboard.json").read_text("utf-8"))


def alerts() -> list[Any]:
    read = yaml.safe_load((FOLDER / "alerts.yml").read_text("utf-8"))
    return [rule for group in read["groups"] for rule in group["rules"]]


def panel_expressions() -> Iterator[tuple[str, str]]:
    for panel in dashboard()["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def expressions() -> list[tuple[str, str]]:
    return [*panel_expressions(), *((rule["alert"], rule["expr"]) for rule in alerts())]


@pytest.fixture
async def there() -> dict[str, set[str]]:
    """The names of all figures with their labels, as a service shows them that has done a little."""
    async with watched({"metrics": True}) as client:
        await put_two(client)
        await client.post("/search", json={"query": "keys"})
        await client.post("/search", json={"query": "keys", "cursor": "nonsense"})
        page = (await client.get("/metrics")).content
    found: dict[str, set[str]] = {}
    for name, labels in shown(page):
        found.setdefault(name, set()).update(label for label, _ in labels)
    return found


async def test_every_expression_asks_for_figures_that_exist(there: dict[str, set[str]]) -> None:
    asked = {name for _, text in expressions() for name in NAME.findall(text)}
    assert len(asked) >= 12
    assert asked - there.keys() == set()


async def test_every_figure_that_exists_is_on_the_dashboard_or_alerts(there: dict[str, set[str]]) -> None:
    asked = " ".join(text for _, text in expressions()) + (FOLDER / "alerts.yml").read_text("utf-8")
    families = {re.sub(r"_(bucket|count|sum)$", "", name) for name in there if name.startswith("toolscript_")}
    assert {name for name in families if name not in asked} == NOWHERE


async def test_every_figure_that_exists_is_on_its_page(there: dict[str, set[str]]) -> None:
    rows = METRIC_ROW.findall((ROOT / "docs" / "metrics.md").read_text("utf-8"))
    listed = {name: set(LABEL.findall(labels)) for name, labels in rows}
    families: dict[str, set[str]] = {}
    for name, labels in there.items():
        family = re.sub(r"_(bucket|count|sum)$", "", name)
        families.setdefault(family, set()).update(labels - {"le"})
    ours = {name: labels for name, labels in families.items() if name.startswith("toolscript_")}
    assert {name: labels for name, labels in listed.items() if not name.startswith(OF_WORKERS)} == ours


async def test_every_label_that_is_asked_for_is_one_the_figure_has(there: dict[str, set[str]]) -> None:
    unknown = []
    for title, text in expressions():
        for name, matchers in METRIC_WITH_LABELS.findall(text):
            wanted = {label for label, _ in MATCHER.findall(matchers)}
            unknown += [f"{title}: {name} has no {label}" for label in wanted - there[name] - ADDED]
        grouped = GROUPED.findall(text)
        assert len(grouped) == len(GROUPING.findall(text)), f"{title}: what is grouped?"
        for labels, name in grouped:
            wanted = {one.strip() for one in labels.split(",")}
            unknown += [f"{title}: {name} has no {label}" for label in wanted - there[name] - ADDED]
    assert unknown == []


def test_every_value_that_is_asked_for_is_one_there_can_be() -> None:
    stages = {stage for product in STAGES for stage in STAGES[product]}
    can_be = {"outcome": set(OUTCOMES), "stage": stages, "product": set(PRODUCTS)}
    for title, text in expressions():
        for label, value in MATCHER.findall(text):
            assert value in can_be.get(label, {value}), f"{title}: {label} is never {value}"


def test_every_panel_can_be_imported_and_says_what_it_shows() -> None:
    read = dashboard()
    assert [one["name"] for one in read["__inputs"]] == ["DS_PROMETHEUS"]
    ids = [panel["id"] for panel in read["panels"]]
    assert len(set(ids)) == len(ids) >= 12
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in read["panels"]}
    assert len(places) == len(ids)
    for panel in read["panels"]:
        assert panel["title"]
        assert panel["datasource"]["uid"] == "${DS_PROMETHEUS}"
        assert all(target["legendFormat"] for target in panel["targets"])


def test_every_alert_says_how_bad_it_is_and_what_to_do() -> None:
    names = [rule["alert"] for rule in alerts()]
    assert len(set(names)) == len(names) >= 5
    for rule in alerts():
        assert rule["for"]
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["description"]


def test_every_alert_has_a_case_in_which_it_is_raised() -> None:
    cases = (FOLDER / "alerts_test.yml").read_text("utf-8")
    assert [rule["alert"] for rule in alerts() if rule["alert"] not in cases] == []


def test_prometheus_reads_where_the_figures_are_under_the_name_that_the_alerts_know() -> None:
    read = yaml.safe_load((FOLDER / "prometheus.yml").read_text("utf-8"))
    (scrape,) = read["scrape_configs"]
    assert scrape["metrics_path"] == METRICS_PATH
    assert read["rule_files"] == ["alerts.yml"]
    assert f'job="{scrape["job_name"]}"' in " ".join(text for _, text in expressions())
