"""Random requests to every operation of an OpenAPI document, by Schemathesis: are the answers as documented?"""

import argparse
import logging
import random
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import jsonschema  # type: ignore[import-untyped]
import schemathesis
from hypothesis import Phase, settings
from schemathesis import Case, HookContext, Response
from schemathesis.core.failures import AcceptedNegativeData, Failure
from schemathesis.engine import events, from_schema
from schemathesis.engine.run import PhaseName
from schemathesis.openapi.checks import RejectedPositiveData
from schemathesis.schemas import BaseSchema

HOSTILE = (
    "\0",
    "a\0b",
    "' OR 1=1 --",
    "%00",
    "\u202e",
    "\U0001f600" * 20,
    "\x1b[2J",
    "x" * 1001,
    "\ufeff",
    "../..",
)
UNKNOWN_PARAMETER = "in query - violates `additionalProperties`"
# Schemathesis reads a pattern with a length as the length of the match, and finds known values to violate it.
KNOWN_VALUE = re.compile(r"dictionary `(?!hostile`)\w+` entry violates the schema")

logger = logging.getLogger(__name__)
PATIENCE = 60.0

IsMisfit = Callable[[Response], bool]


@dataclass
class Asked:
    """Requests to one operation, and its responses: random ones, and those at the edges of its schema."""

    examples: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    failures: dict[str, str] = field(default_factory=dict)

    @property
    def reached(self) -> bool:
        """Whether a request succeeded, or had no effect left to have."""
        return any(200 <= status < 300 or status == 409 for status in self.statuses)


@dataclass(frozen=True)
class Api:
    """What random requests need to know about an API.

    `known` are existing values by kind, and `uses` is the kind of each parameter; half of its values exist.
    `is_misfit` tells whether a request that the schema allows was refused for its shape, which it must not be.
    `only` is a pattern of paths.
    """

    url: str
    auth: Mapping[str, Any]
    known: Mapping[str, Sequence[Any]]
    uses: Mapping[str, str]
    is_misfit: IsMisfit
    only: str = ""

    def ask(self, examples: int, seed: int, *, edges: bool) -> dict[str, Asked]:
        """Test all operations; with `edges` also at the edges of their schemas, which takes longer."""
        config = schemathesis.Config.from_dict(self._configuration(examples, seed, edges=edges))
        schema: BaseSchema = schemathesis.openapi.from_url(
            f"{self.url}/openapi.json",
            config=config,
            headers={"authorization": f"Bearer {self._any_token()}"},
            timeout=PATIENCE,
        )
        if self.only:
            schema = schema.include(path_regex=self.only)
        schema.hook("filter_failure")(_fault_filter(self.is_misfit))
        requests: dict[str, Asked] = defaultdict(Asked)
        with _only_random():
            for event in from_schema(schema).execute():
                if isinstance(event, events.ScenarioFinished):
                    _count(requests, event)
                    if event.label in requests:
                        logger.info(_line(event.label, requests[event.label]))
                elif isinstance(event, events.NonFatalError):
                    requests[event.label].failures[event.info.title] = str(event.value)
                elif isinstance(event, events.FatalError):
                    raise event.exception
        return dict(requests)

    def _any_token(self) -> str:
        return str(next(iter(self.auth.values()))["bearer"])

    def _configuration(self, examples: int, seed: int, *, edges: bool) -> dict[str, Any]:
        return {
            "seed": seed,
            "auth": {"openapi": dict(self.auth)},
            "cache": {"enabled": False},
            "output": {"sanitization": {"enabled": False}},
            "dictionaries": {
                **{name: {"values": list(values)} for name, values in self.known.items()},
                "hostile": {"values": list(HOSTILE)},
            },
            "parameters": {place: {"dictionary": kind, "probability": 0.5} for place, kind in self.uses.items()},
            "generation": {
                "max-examples": examples,
                "database": "none",
                "dictionaries": {"string": {"dictionary": "hostile", "probability": 0.05}},
            },
            "phases": {
                "coverage": {"enabled": edges},
                "stateful": {"enabled": False},
                # Responses influence the generated data, which would end generation early.
                "fuzzing": {"extra-data-sources": {"responses": False}, "error-feedback": {"enabled": False}},
            },
            "continue-on-failure": True,
        }


@contextmanager
def _only_random() -> Iterator[None]:
    """Generate without Hypothesis' search for requests that succeed.

    From a thousand examples on it repeats until it has found enough new ones, which is forever for an operation
    with few values.
    """
    before = settings.get_current_profile_name()
    settings.register_profile("only-random", phases=(Phase.explicit, Phase.generate, Phase.shrink))
    settings.load_profile("only-random")
    try:
        yield
    finally:
        settings.load_profile(before)


def _fault_filter(is_misfit: IsMisfit) -> Callable[[HookContext, Failure, Case[Any], Response], bool]:
    def is_fault(context: HookContext, failure: Failure, case: Case[Any], response: Response) -> bool:
        """Unknown query parameters are ignored, as usual in HTTP, and what is too large is refused as such."""
        if isinstance(failure, AcceptedNegativeData):
            if response.status_code == httpx2.codes.CONTENT_TOO_LARGE:
                return False
            is_known = KNOWN_VALUE.search(failure.message) or UNKNOWN_PARAMETER in failure.message
            return not (is_known or ("in body" in failure.message and _has_valid_body(case)))
        return not isinstance(failure, RejectedPositiveData) or is_misfit(response)

    return is_fault


def _has_valid_body(case: Case[Any]) -> bool:
    """Return whether the body is valid after all: a known value may have replaced what was not."""
    document, operation = case.operation.schema.raw_schema, case.operation
    content = document["paths"][operation.path][operation.method]["requestBody"]["content"]
    schema = {**content["application/json"]["schema"], "components": document["components"]}
    return bool(jsonschema.Draft202012Validator(schema).is_valid(case.body))


def _count(asked: dict[str, Asked], event: events.ScenarioFinished) -> None:
    recorder = event.recorder
    for case_id, node in recorder.cases.items():
        item, answer = asked[node.value.operation.label], recorder.find_response(case_id=case_id)
        item.examples += event.phase is PhaseName.FUZZING
        if answer is not None:
            item.statuses[answer.status_code] += 1
        for check in recorder.checks.get(case_id, ()):
            if check.failure_info is not None:
                failure = check.failure_info.failure
                message = answer.content[:300] if answer is not None else b"nothing"
                what = f"{check.name}: {failure.title}: {failure.message[:300]}"
                if what not in item.failures:
                    item.failures[what] = f"{check.failure_info.code_sample}\n{message!r}"
                    logger.warning("%s\n%s", what, item.failures[what])


def failures_of(asked: Mapping[str, Asked]) -> dict[str, dict[str, str]]:
    return {name: item.failures for name, item in asked.items() if item.failures}


def report(asked: Mapping[str, Asked]) -> str:
    lines = []
    for operation, item in sorted(asked.items()):
        lines += [_line(operation, item), *(f"    {what}\n{how}" for what, how in item.failures.items())]
    return "\n".join(lines)


def _line(operation: str, item: Asked) -> str:
    statuses = ", ".join(f"{status}: {count:,}" for status, count in sorted(item.statuses.items()))
    return f"{operation}: {item.examples:,} examples; {statuses}; {len(item.failures)} failures"


def main(description: str | None, ask: Callable[[int, int, str], Mapping[str, Asked]]) -> int:
    """Run from the command line. `ask` takes the number of examples, the seed, and a pattern of paths."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--examples", type=int, default=1000, help="at random, for each operation")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--only", default="", help="paths, as a regular expression; by default all")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    for noisy in ("toolscript", "httpx2"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    started = time.monotonic()
    asked = ask(arguments.examples, arguments.seed, arguments.only)
    examples = sum(item.examples for item in asked.values())
    answers = sum(item.statuses.total() for item in asked.values())
    failures = sum(len(item.failures) for item in asked.values())
    took = time.monotonic() - started
    summary = f"{len(asked)} operations, {examples:,} examples, {answers:,} answers, {failures} failures"
    sys.stdout.write(f"{report(asked)}\nseed {arguments.seed}: {summary} in {took:,.0f} s\n")
    return 1 if failures else 0
