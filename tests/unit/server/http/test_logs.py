"""Log lines: their ids, and data that they never contain."""

import logging

import pytest

from tests.unit.server.http.captured_logs import lines, logged
from toolscript.core.errors import IndexUnavailable
from toolscript.core.web.request_context import current_request_id

pytestmark = [pytest.mark.requirement("DOC-005")]

logger = logging.getLogger("toolscript.test")


def test_a_line_has_the_ids_of_the_request_and_of_its_trace() -> None:
    before = current_request_id.set("request-1")
    try:
        with logged(trace_ids=lambda: {"trace_id": "t" * 32, "span_id": "s" * 16}) as output:
            logger.info("done", extra={"took_ms": 1.5})
    finally:
        current_request_id.reset(before)
    (line,) = lines(output)
    assert (line["request_id"], line["trace_id"], line["span_id"]) == ("request-1", "t" * 32, "s" * 16)
    assert (line["event"], line["took_ms"], line["level"]) == ("done", 1.5, "info")


def test_where_there_is_no_request_and_no_trace_there_are_no_ids() -> None:
    with logged() as output:
        logger.info("done")
    (line,) = lines(output)
    assert not {"request_id", "trace_id", "span_id"} & line.keys()


def test_only_facts_with_known_names_are_written() -> None:
    with logged() as output:
        logger.info("done", extra={"part": "index", "document": "my very own words"})
    (line,) = lines(output)
    assert line["part"] == "index"
    assert "my very own words" not in output.getvalue()


def test_at_debug_our_loggers_log_and_libraries_do_not() -> None:
    with logged("debug") as output:
        logger.debug("of ours")
        for library in ("openai._base_client", "httpcore.http11", "sse_starlette.sse", "grpc._cython", "mcp"):
            logging.getLogger(library).debug("Request options: my very own words")
            logging.getLogger(library).warning("beware")
    assert [line["event"] for line in lines(output)] == ["of ours", *["beware"] * 5]


def test_at_a_higher_level_all_loggers_follow_it() -> None:
    with logged("warning") as output:
        logger.info("of ours")
        logging.getLogger("uvicorn.error").info("started")
        logger.warning("beware")
    assert [line["event"] for line in lines(output)] == ["beware"]


def _fail(error: Exception) -> None:
    raise error


@pytest.mark.parametrize("style", ["json", "text"])
@pytest.mark.parametrize(
    "error", [ValueError("my very own words"), KeyError("my very own words"), RuntimeError("my very own words")]
)
def test_an_unexpected_error_is_logged_with_its_location_and_not_its_data(error: Exception, style: str) -> None:
    with logged(style=style) as output:
        try:
            _fail(error)
        except Exception:
            logger.exception("unexpected error")
    text = output.getvalue()
    assert type(error).__name__ in text
    assert "test_logs.py" in text
    assert "in _fail" in text
    assert "my very own words" not in text


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (IndexUnavailable("Qdrant does not answer"), "IndexUnavailable: Qdrant does not answer"),
        (AttributeError("no attribute 'x'"), "AttributeError: no attribute 'x'"),
        (PermissionError(13, "Permission denied", "/secret/name"), "PermissionError: Permission denied"),
    ],
)
def test_error_messages_about_programs_and_engines_are_logged(error: Exception, said: str) -> None:
    with logged() as output:
        try:
            _fail(error)
        except Exception:
            logger.exception("unexpected error")
    assert said in lines(output)[0]["exception"]
    assert "/secret/name" not in output.getvalue()


def test_the_cause_of_an_error_is_logged_before_it() -> None:
    words = ValueError("my very own words")
    with logged() as output:
        try:
            try:
                _fail(words)
            except ValueError as error:
                raise IndexUnavailable("could not be read") from error
        except IndexUnavailable:
            logger.exception("unexpected error")
    report = lines(output)[0]["exception"]
    assert (
        report.index("ValueError")
        < report.index("which led to")
        < report.index("IndexUnavailable: could not be read")
    )
    assert "my very own words" not in report


def test_a_cycle_of_causes_ends() -> None:
    first, second = ValueError("a"), KeyError("b")
    first.__cause__, second.__cause__ = second, first
    with logged() as output:
        logger.error("unexpected error", exc_info=first)
    assert output.getvalue().count("which led to") == 8


def test_a_group_of_errors_names_each_of_them() -> None:
    with logged() as output:
        logger.error(
            "unexpected error", exc_info=ExceptionGroup("words", [ValueError("words"), KeyError("words")])
        )
    report = lines(output)[0]["exception"]
    assert all(name in report for name in ("ExceptionGroup", "ValueError", "KeyError"))
    assert "words" not in report
