"""The dashboard, the alerts and the Prometheus config use existing metrics and labels."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.repo.sources import ROOT
from tests.unit.server.composition.observed_app import put_two, watched
from tests.unit.server.metrics.metrics_page import shown
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
# For lookups, not for monitoring.
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
    """Return all metrics with their labels, from a service that has handled a few requests."""
    async with watched({"metrics": True}) as client:
        await put_two(client)
        await client.post("/search", json={"query": "keys"})
        await client.post("/search", json={"query": "keys", "cursor": "nonsense"})
        page = (await client.get("/metrics")).content
    result: dict[str, set[str]] = {}
    for name, labels in shown(page):
        result.setdefault(name, set()).update(label for label, _ in labels)
    return result


async def test_every_expression_uses_existing_metrics(there: dict[str, set[str]]) -> None:
    requests = {name for _, text in expressions() for name in NAME.findall(text)}
    assert len(requests) >= 12
    assert requests - there.keys() == set()


async def test_every_metric_is_on_the_dashboard_or_in_an_alert(there: dict[str, set[str]]) -> None:
    requests = " ".join(text for _, text in expressions()) + (FOLDER / "alerts.yml").read_text("utf-8")
    families = {re.sub(r"_(bucket|count|sum)$", "", name) for name in there if name.startswith("toolscript_")}
    assert {name for name in families if name not in requests} == NOWHERE


async def test_every_metric_is_documented(there: dict[str, set[str]]) -> None:
    rows = METRIC_ROW.findall((ROOT / "docs" / "metrics.md").read_text("utf-8"))
    listed = {name: set(LABEL.findall(labels)) for name, labels in rows}
    families: dict[str, set[str]] = {}
    for name, labels in there.items():
        family = re.sub(r"_(bucket|count|sum)$", "", name)
        families.setdefault(family, set()).update(labels - {"le"})
    ours = {name: labels for name, labels in families.items() if name.startswith("toolscript_")}
    assert listed == ours


async def test_every_label_in_an_expression_exists(there: dict[str, set[str]]) -> None:
    unknown = []
    for title, text in expressions():
        for name, matchers in METRIC_WITH_LABELS.findall(text):
            expected = {label for label, _ in MATCHER.findall(matchers)}
            unknown += [f"{title}: {name} has no {label}" for label in expected - there[name] - ADDED]
        grouped = GROUPED.findall(text)
        assert len(grouped) == len(GROUPING.findall(text)), f"{title}: what is grouped?"
        for labels, name in grouped:
            expected = {part.strip() for part in labels.split(",")}
            unknown += [f"{title}: {name} has no {label}" for label in expected - there[name] - ADDED]
    assert unknown == []


def test_every_label_value_in_an_expression_is_possible() -> None:
    stages = {stage for product in STAGES for stage in STAGES[product]}
    can_be = {"outcome": set(OUTCOMES), "stage": stages, "product": set(PRODUCTS)}
    for title, text in expressions():
        for label, value in MATCHER.findall(text):
            assert value in can_be.get(label, {value}), f"{title}: {label} is never {value}"


def test_every_panel_can_be_imported_and_has_a_description() -> None:
    read = dashboard()
    assert [item["name"] for item in read["__inputs"]] == ["DS_PROMETHEUS"]
    ids = [panel["id"] for panel in read["panels"]]
    assert len(set(ids)) == len(ids) >= 12
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in read["panels"]}
    assert len(places) == len(ids)
    for panel in read["panels"]:
        assert panel["title"]
        assert panel["datasource"]["uid"] == "${DS_PROMETHEUS}"
        assert all(target["legendFormat"] for target in panel["targets"])


def test_every_alert_has_a_severity_and_a_remedy() -> None:
    names = [rule["alert"] for rule in alerts()]
    assert len(set(names)) == len(names) >= 5
    for rule in alerts():
        assert rule["for"]
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["description"]


def test_every_alert_has_a_test_case() -> None:
    cases = (FOLDER / "alerts_test.yml").read_text("utf-8")
    assert [rule["alert"] for rule in alerts() if rule["alert"] not in cases] == []


def test_prometheus_scrapes_the_metrics_under_the_job_name_of_the_alerts() -> None:
    read = yaml.safe_load((FOLDER / "prometheus.yml").read_text("utf-8"))
    (scrape,) = read["scrape_configs"]
    assert scrape["metrics_path"] == METRICS_PATH
    assert read["rule_files"] == ["alerts.yml"]
    assert f'job="{scrape["job_name"]}"' in " ".join(text for _, text in expressions())
