"""eval make as it is wired: from a file, from a running gateway, with a text model and without."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.core.llm.text_endpoint import TextEndpoint
from tests.unit.gateway.mcp.gateway_double import GatewayDouble
from tests.unit.gateway.runtime.serving import open_app, serving
from toolscript.core.errors import InvalidRequest, NotFound, SetupError, Unavailable
from toolscript.core.items import Item
from toolscript.core.values import silent
from toolscript.tools.catalog.files import read_items
from toolscript_eval.dataset import WrittenDraft
from toolscript_eval.gateway import make_draft

TOOLS = Path(__file__).parents[2] / "golden" / "tools.jsonl"


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TEXT_MODEL", "TEXT_URL", "TEXT_API_KEY", "GATEWAY_URL"):
        monkeypatch.delenv(f"TOOLSCRIPT_{name}", raising=False)


@pytest.fixture
def endpoint() -> Iterator[TextEndpoint]:
    with TextEndpoint({"requests": ["I have a wish"]}) as started:
        yield started


def make(
    folder: Path,
    *,
    tools: Path | None = TOOLS,
    force: bool = False,
    text_model: str | None = None,
    text_url: str | None = None,
) -> WrittenDraft:
    flags = {"text_model": text_model, "text_url": text_url}
    return make_draft(folder, tools=tools, flags=flags, per_kind=4, seed=1, force=force, on_progress=silent)


def queries(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "queries.jsonl").read_text("utf-8").splitlines()]


def test_a_catalog_in_a_file_becomes_a_draft(tmp_path: Path) -> None:
    written = make(tmp_path / "set")
    assert dict(written.counts) == dict.fromkeys(("exact", "typo", "paraphrase", "unanswerable"), 4)
    keys = {item.key for item in read_items(tmp_path / "set" / "tools.jsonl") if isinstance(item, Item)}
    assert (written.tools, written.folder) == (len(keys), str(tmp_path / "set"))
    drafted = queries(tmp_path / "set")
    assert len(drafted) == 16
    assert {key for query in drafted for step in query["gold_groups"] for key in step} <= keys


def test_the_same_seed_writes_the_same_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        make(tmp_path / name)
    for name in ("tools.jsonl", "queries.jsonl"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_lines_that_are_no_tools_are_counted_and_left_out(tmp_path: Path) -> None:
    catalog = tmp_path / "catalog.jsonl"
    catalog.write_text('{"server": "a", "name": "read_file"}\nnonsense\n{"name": "x"}\n', "utf-8")
    written = make(tmp_path / "set", tools=catalog)
    assert (written.tools, written.refused_lines) == (1, 2)


async def test_without_a_file_the_tools_are_those_of_the_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(open_app(GatewayDouble())) as url:
        monkeypatch.setenv("TOOLSCRIPT_GATEWAY_URL", url)
        written = await asyncio.to_thread(make, tmp_path, tools=None)
    items = [item for item in read_items(tmp_path / "tools.jsonl") if isinstance(item, Item)]
    expected = ["database__query_rows", "files__read_file", "files__write_file", "github__create_issue"]
    assert (written.tools, [item.key for item in items]) == (4, expected)
    assert all(item.input_schema for item in items)


def test_a_text_model_words_queries_with_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, endpoint: TextEndpoint
) -> None:
    monkeypatch.setenv("TOOLSCRIPT_TEXT_API_KEY", "s3cret")
    written = make(tmp_path, text_model="small", text_url=endpoint.url)
    assert written.counts["model_paraphrase"] == 1
    assert [query["text"] for query in queries(tmp_path) if query["kind"] == "model_paraphrase"] == [
        "I have a wish"
    ]
    assert (len(endpoint.asked), endpoint.asked[0]["model"]) == (4, "small")
    assert set(endpoint.keys) == {"Bearer s3cret"}


def test_without_a_text_model_no_endpoint_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, endpoint: TextEndpoint
) -> None:
    monkeypatch.setenv("TOOLSCRIPT_TEXT_API_KEY", "s3cret")
    make(tmp_path)
    assert endpoint.asked == []


@pytest.mark.parametrize(("model", "url"), [("small", None), (None, "http://127.0.0.1:1/v1")], ids=str)
def test_half_a_text_model_is_refused_before_anything_is_done(
    tmp_path: Path, model: str | None, url: str | None
) -> None:
    with pytest.raises(SetupError) as refused:
        make(tmp_path / "set", tools=tmp_path / "absent", text_model=model, text_url=url)
    assert "--text-model" in refused.value.hint
    assert not (tmp_path / "set").exists()


def test_a_model_that_fails_leaves_no_half_draft(tmp_path: Path, endpoint: TextEndpoint) -> None:
    for _ in range(9):
        endpoint.answer_once({"error": {"message": "busy"}}, 429, ("Retry-After-Ms", "1"))
    with pytest.raises(Unavailable, match="busy"):
        make(tmp_path / "set", text_model="small", text_url=endpoint.url)
    assert not (tmp_path / "set").exists()


def test_an_edited_draft_is_refused_before_the_model_is_called(tmp_path: Path, endpoint: TextEndpoint) -> None:
    (tmp_path / "queries.jsonl").write_text("edited", "utf-8")
    with pytest.raises(InvalidRequest, match=r"queries\.jsonl"):
        make(tmp_path, text_model="small", text_url=endpoint.url)
    assert endpoint.asked == []
    make(tmp_path, force=True)
    assert len(queries(tmp_path)) == 16


def test_a_missing_or_empty_catalog_is_reported(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="absent"):
        make(tmp_path / "set", tools=tmp_path / "absent")
    (tmp_path / "empty").write_text("", "utf-8")
    with pytest.raises(InvalidRequest, match="no tools"):
        make(tmp_path / "set", tools=tmp_path / "empty")
