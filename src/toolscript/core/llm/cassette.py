"""Recorded answers of a chat endpoint, to repeat a measurement without the endpoint.

An answer is found by a hash of its request, which has the model, the prompt with its fence, and the schema: what
reads the answer is the same code that reads one from the network. A prompt that changes has no answer any more.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from toolscript.core.errors import InvalidRequest, NotFound, SetupError

FORMAT = 1
# Answers of the endpoint itself. Others, such as a rate limit, say nothing about the request.
RECORDED_STATUS = frozenset([200, 400, 422])
# Nothing listens there: a replay never opens a connection.
REPLAY_URL = "http://cassette.invalid/v1"

_HINT = "give a file that `--record` wrote"


@dataclass
class Cassette:
    """Answers of `model` by the hash of the request; `missing` are the hashes that a replay had no answer for."""

    path: Path
    model: str
    answers: dict[str, Mapping[str, object]] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)

    def save(self) -> None:
        """Write the file atomically, in order of the hashes."""
        data = {"format": FORMAT, "model": self.model, "answers": dict(sorted(self.answers.items()))}
        unfinished = self.path.with_name(f".{self.path.name}.unfinished")
        try:
            unfinished.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", "utf-8")
            unfinished.replace(self.path)
        except OSError as error:
            raise SetupError(
                f"cannot write {self.path}: {error.strerror}", hint="give a file in an existing folder"
            ) from error

    def require_complete(self) -> None:
        if self.missing:
            raise NotFound(
                f"{self.path} has no answer to {len(self.missing)} requests: the prompt, the skills, the items or"
                " the model changed since it was recorded",
                hint="set TOOLSCRIPT_TEXT_URL and TOOLSCRIPT_TEXT_MODEL, and add --record",
            )


def read_cassette(path: Path) -> Cassette:
    try:
        data = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise NotFound(f"cannot read {path}: {error.strerror}", hint=_HINT) from None
    except ValueError as error:
        raise InvalidRequest(f"{path} is not JSON: {str(error)[:80]}", hint=_HINT) from None
    if not isinstance(data, dict) or data.get("format") != FORMAT or not _are_answers(data.get("answers")):
        raise InvalidRequest(f"{path} is no cassette of format {FORMAT}", hint=_HINT)
    return Cassette(path, str(data.get("model", "")), dict(data["answers"]))


def cassette_to_record(path: Path, model: str) -> Cassette:
    """Open a cassette to add answers of this model to it; a new one if there is no file."""
    if not path.parent.is_dir():
        raise SetupError(f"there is no folder {path.parent}", hint="give a file in an existing folder")
    if not path.exists():
        return Cassette(path, model)
    cassette = read_cassette(path)
    if cassette.model != model:
        raise InvalidRequest(
            f"{path} has answers of {cassette.model or 'an unknown model'}, not of {model}",
            hint="record each model in a file of its own",
        )
    return cassette


def request_hash(body: bytes) -> str:
    """Return a hash of what is requested, whatever the order of its fields."""
    canonical = json.dumps(json.loads(body), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


class CassetteTransport(httpx2.AsyncBaseTransport):
    """Answers recorded requests. `endpoint` answers the others, and is recorded; None refuses them."""

    def __init__(self, cassette: Cassette, endpoint: httpx2.AsyncBaseTransport | None = None) -> None:
        self._cassette = cassette
        self._endpoint = endpoint

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        key = request_hash(await request.aread())
        recorded = self._cassette.answers.get(key)
        if recorded is not None:
            return httpx2.Response(int(str(recorded["status"])), json=recorded["body"], request=request)
        if self._endpoint is None:
            # Not found is the one refusal that a client neither retries nor takes for a refused schema.
            self._cassette.missing.add(key)
            return httpx2.Response(404, json={"error": {"message": "no recorded answer"}}, request=request)
        response = await self._endpoint.handle_async_request(request)
        content = await response.aread()
        self._record(key, response.status_code, content)
        headers = {name: value for name, value in response.headers.items() if name in _KEPT_HEADERS}
        return httpx2.Response(response.status_code, headers=headers, content=content, request=request)

    async def aclose(self) -> None:
        if self._endpoint is not None:
            await self._endpoint.aclose()

    def _record(self, key: str, status: int, content: bytes) -> None:
        try:
            body = json.loads(content)
        except ValueError:
            return
        if status not in RECORDED_STATUS:
            return
        # A refusal may quote a key or the prompt; only its status matters.
        said = body if status == 200 else {"error": {"message": "refused"}}
        self._cassette.answers[key] = {"status": status, "body": said}


# The content is decoded by now, so its encoding and length are not those of the response.
_KEPT_HEADERS = frozenset(["content-type", "retry-after", "retry-after-ms", "x-should-retry"])


def _are_answers(answers: object) -> bool:
    return isinstance(answers, dict) and all(
        isinstance(answer, dict) and isinstance(answer.get("status"), int) and "body" in answer
        for answer in answers.values()
    )
