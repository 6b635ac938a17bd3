"""Both OpenAPI documents keep our style: tests/support/openapi_style/ruleset.yaml, checked by Spectral."""

import json
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest

from tests.support.npm_tools import installed
from tests.unit.server.composition.observed_app import observed_app, settings_of
from toolscript.gateway.openapi import openapi_document
from toolscript.server.observability import open_observability

pytestmark = pytest.mark.requirement("AP-001")

STYLE = Path(__file__).parents[1] / "support" / "openapi_style"


def style_errors(document: dict[str, Any], folder: Path) -> list[str]:
    path = folder / "openapi.json"
    path.write_text(json.dumps(document), "utf-8")
    spectral = installed(STYLE) / "node_modules" / ".bin" / "spectral"
    command = [str(spectral), "lint", str(path), "--ruleset", str(STYLE / "ruleset.yaml"), "--format", "json"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    found = json.loads(done.stdout)
    return [f"{item['code']}: {'.'.join(map(str, item['path']))}" for item in found if item["severity"] == 0]


async def test_the_service_keeps_the_style(tmp_path: Path) -> None:
    async with open_observability(settings_of({"metrics": True}), cast("Any", None)) as observability:
        document = observed_app(observability).openapi()
    assert style_errors(document, tmp_path) == []


def test_the_gateway_keeps_the_style(tmp_path: Path) -> None:
    assert style_errors(openapi_document(10, 0.3), tmp_path) == []


def test_a_field_without_a_description_is_found(tmp_path: Path) -> None:
    document = openapi_document(10, 0.3)
    schema = next(iter(document["components"]["schemas"].values()))
    del next(iter(schema["properties"].values()))["description"]
    assert any(error.startswith("described-fields") for error in style_errors(document, tmp_path))
