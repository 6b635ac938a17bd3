"""Recorded answers: what is recorded from a real endpoint on loopback is replayed without it, and nothing else."""

import json
from pathlib import Path

import httpx2
import pytest

from tests.unit.core.llm.text_endpoint import TextEndpoint
from toolscript.core.errors import InvalidRequest, NotFound, SetupError, ToolscriptError
from toolscript.core.llm.cassette import (
    REPLAY_URL,
    Cassette,
    CassetteTransport,
    cassette_to_record,
    read_cassette,
    request_hash,
)
from toolscript.core.llm.model import object_with
from toolscript.core.llm.openai import OpenAITextModel

SCHEMA = object_with(requests={"type": "array", "items": {"type": "string"}, "maxItems": 3})


async def reply(url: str, transport: CassetteTransport, data: str = "a tool", retries: int = 0) -> object:
    model = OpenAITextModel(url, "small", api_key="secret", retries=retries, transport=transport)
    try:
        return await model.reply("word it", data, SCHEMA)
    finally:
        await model.close()


async def recorded(endpoint: TextEndpoint, path: Path, *data: str) -> Cassette:
    cassette = cassette_to_record(path, "small")
    for text in data:
        await reply(endpoint.url, CassetteTransport(cassette, httpx2.AsyncHTTPTransport()), text)
    cassette.save()
    return read_cassette(path)


@pytest.mark.slow
async def test_a_recorded_answer_is_replayed_without_its_endpoint(tmp_path: Path) -> None:
    with TextEndpoint(default={"requests": ["read a file"]}) as endpoint:
        cassette = await recorded(endpoint, tmp_path / "c.json", "a tool")
    assert await reply(REPLAY_URL, CassetteTransport(cassette)) == {"requests": ["read a file"]}
    assert cassette.model == "small"
    cassette.require_complete()


@pytest.mark.slow
async def test_a_cassette_has_no_key_and_no_prompt(tmp_path: Path) -> None:
    with TextEndpoint() as endpoint:
        await recorded(endpoint, tmp_path / "c.json", "a private tool")
    text = (tmp_path / "c.json").read_text("utf-8")
    assert "secret" not in text
    assert "private" not in text
    assert "127.0.0.1" not in text


@pytest.mark.slow
async def test_recording_again_asks_only_what_has_no_answer(tmp_path: Path) -> None:
    with TextEndpoint() as endpoint:
        await recorded(endpoint, tmp_path / "c.json", "one")
        await recorded(endpoint, tmp_path / "c.json", "one", "two")
        assert len(endpoint.asked) == 2
    assert len(read_cassette(tmp_path / "c.json").answers) == 2


@pytest.mark.slow
async def test_an_endpoint_that_refuses_limits_is_replayed_with_its_refusal(tmp_path: Path) -> None:
    with TextEndpoint(default={"requests": []}) as endpoint:
        endpoint.answer_once({"error": {"message": "maxItems is not supported"}}, 400)
        cassette = await recorded(endpoint, tmp_path / "c.json", "a tool")
        assert len(endpoint.asked) == 2
    assert await reply(REPLAY_URL, CassetteTransport(cassette)) == {"requests": []}


@pytest.mark.slow
@pytest.mark.parametrize("status", [401, 404, 429, 500])
async def test_a_failure_of_the_endpoint_is_not_recorded(tmp_path: Path, status: int) -> None:
    with TextEndpoint(default={"requests": ["later"]}) as endpoint:
        endpoint.answer_once({"error": {"message": "no"}}, status, ("retry-after-ms", "1"))
        cassette = cassette_to_record(tmp_path / "c.json", "small")
        transport = CassetteTransport(cassette, httpx2.AsyncHTTPTransport())
        if status in (401, 404):
            with pytest.raises(SetupError):
                await reply(endpoint.url, transport)
            assert cassette.answers == {}
        else:
            assert await reply(endpoint.url, transport, retries=1) == {"requests": ["later"]}
            assert [answer["status"] for answer in cassette.answers.values()] == [200]


async def test_a_request_without_an_answer_fails_at_once_and_is_counted(tmp_path: Path) -> None:
    cassette = Cassette(tmp_path / "c.json", "small")
    with pytest.raises(SetupError):
        await reply(REPLAY_URL, CassetteTransport(cassette), retries=5)
    assert len(cassette.missing) == 1
    with pytest.raises(NotFound, match="no answer to 1 requests") as raised:
        cassette.require_complete()
    assert "--record" in (raised.value.hint or "")


def test_the_hash_is_that_of_the_request_and_not_of_its_spelling() -> None:
    one, same, other = b'{"a": 1, "b": [2]}', b'{"b":[2],\n"a":1}', b'{"a": 1, "b": [3]}'
    assert request_hash(one) == request_hash(same) != request_hash(other)


def test_answers_of_another_model_are_not_mixed_in(tmp_path: Path) -> None:
    Cassette(tmp_path / "c.json", "small").save()
    with pytest.raises(InvalidRequest, match="answers of small, not of large"):
        cassette_to_record(tmp_path / "c.json", "large")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 2, "answers": {}}', '{"format": 1, "answers": {"a": {"body": 1}}}']
)
def test_a_file_that_is_no_cassette_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.json").write_text(text, "utf-8")
    with pytest.raises(InvalidRequest):
        read_cassette(tmp_path / "c.json")


def test_a_file_that_is_missing_or_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"gone\.json"):
        read_cassette(tmp_path / "gone.json")
    with pytest.raises(SetupError, match="cannot write"):
        Cassette(tmp_path / "no" / "c.json", "small").save()


def test_a_saved_cassette_is_sorted_so_that_two_recordings_can_be_compared(tmp_path: Path) -> None:
    cassette = Cassette(tmp_path / "c.json", "small")
    cassette.answers |= {key: {"status": 200, "body": key} for key in ("b", "a")}
    cassette.save()
    assert list(json.loads((tmp_path / "c.json").read_text("utf-8"))["answers"]) == ["a", "b"]


async def test_a_refusal_is_recorded_without_what_it_quotes(tmp_path: Path) -> None:
    def refuse(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(400, json={"error": {"message": f"bad key {request.headers['authorization']}"}})

    cassette = cassette_to_record(tmp_path / "c.json", "small")
    with pytest.raises(ToolscriptError):
        await reply("http://endpoint.invalid/v1", CassetteTransport(cassette, httpx2.MockTransport(refuse)))
    assert [answer["status"] for answer in cassette.answers.values()] == [400] * len(cassette.answers)
    assert "secret" not in str(cassette.answers)


def test_a_cassette_in_no_folder_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="there is no folder"):
        cassette_to_record(tmp_path / "missing" / "c.json", "small")
