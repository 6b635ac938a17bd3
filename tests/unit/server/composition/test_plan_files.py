"""Plans in a file: valid contents, and errors for invalid files."""

import json
from pathlib import Path

import pytest

from toolscript.core.auth.model import Plan
from toolscript.core.errors import ConfigInvalid
from toolscript.server.tenancy import MAX_BYTES, read_plans

pytestmark = pytest.mark.requirement("DOC-007")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "plans.json"


def test_plans_are_read_with_their_limits(path: Path) -> None:
    free = {"max_top_k": 20, "metadata_fields": ["title", "path"], "max_documents": 0, "requests_per_minute": 60}
    path.write_text(json.dumps({"plans": {"free": free, "paid": {"max_top_k": None}, "all": {}}}))
    assert read_plans(path) == {
        "free": Plan("free", 20, frozenset({"title", "path"}), 0, 60),
        "paid": Plan("paid"),
        "all": Plan("all"),
    }


def test_a_plan_may_allow_no_field_at_all(path: Path) -> None:
    path.write_text('{"plans": {"free": {"metadata_fields": []}}}')
    assert read_plans(path)["free"].metadata_fields == frozenset()


INVALID: list[tuple[str, object]] = [
    *(("max_top_k", value) for value in (0, -1, 1.5, "20", True, [20], 2**60)),
    *(("max_documents", value) for value in (-1, "many", False)),
    *(("requests_per_minute", value) for value in (0, "60", 60.0)),
    *(("metadata_fields", value) for value in ("title", {"title": 1}, [7], [""], [None])),
]


def test_an_invalid_limit_is_named_with_its_plan(path: Path, subtests: pytest.Subtests) -> None:
    for field, value in INVALID:
        with subtests.test(field=field, value=value):
            path.write_text(json.dumps({"plans": {"good": {field: None}, "free": {field: value}}}))
            with pytest.raises(ConfigInvalid, match=f"plans.json: plan `free`: `{field}` is not") as refused:
                read_plans(path)
            assert "good" not in refused.value.message


def test_one_error_names_all_problems(path: Path) -> None:
    path.write_text('{"plans": {"a": {"max_topk": 1, "max_top_k": 0}, "b": 7, "c d": {}}}')
    with pytest.raises(ConfigInvalid) as refused:
        read_plans(path)
    message = refused.value.message
    assert (
        "plan `a`: `max_topk` is not one of max_top_k, metadata_fields, max_documents, requests_per_minute"
        in message
    )
    assert "plan `a`: `max_top_k` is not a whole number" in message
    assert "plan `b`: is not an object" in message
    assert "plan 'c d': a name is" in message


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "7", "{}", '{"plans": []}', '{"plans": {}, "more": 1}', '{"plan": {}}', "[" * 100_000, "\xff"],
)
def test_a_file_of_another_shape_is_refused(path: Path, text: str) -> None:
    path.write_text(text, "latin-1")
    with pytest.raises(ConfigInvalid, match=r"plans\.json"):
        read_plans(path)


@pytest.mark.parametrize(
    "text", ['{"plans": {"free": {}, "free": {}}}', '{"plans": {"free": {"max_top_k": 1, "max_top_k": 2}}}']
)
def test_duplicate_keys_are_refused(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(ConfigInvalid, match="twice"):
        read_plans(path)


def test_a_file_that_is_not_there_or_too_large_is_refused(path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="No such file"):
        read_plans(path)
    path.write_bytes(b" " * (MAX_BYTES + 1))
    with pytest.raises(ConfigInvalid, match="1 MiB"):
        read_plans(path)
