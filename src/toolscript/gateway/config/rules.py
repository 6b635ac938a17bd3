"""The `rules` of config files: which calls are made. A rule with a mistake denies, so that no mistake allows."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from toolscript.core.errors import InvalidRequest
from toolscript.core.items import SEPARATOR
from toolscript.gateway.config.problems import Problem, Severity
from toolscript.gateway.config.read import FILE_NAME, RULES, Config, RulesOfFile
from toolscript.gateway.rules import Effect, Risk, Rule

KEYS = ("tools", "risk", "client", "do", "is")
EXAMPLE = '{"tools": "github__delete_*", "do": "ask"}'
MAX_RULES = 1_000

T = TypeVar("T", bound=StrEnum)


def call_rules_of(config: Config) -> tuple[list[Rule], list[Rule], list[Problem]]:
    """Return the rules of the user's own file, those of other files, and what is wrong with them."""
    own: list[Rule] = []
    of_project: list[Rule] = []
    problems: list[Problem] = []
    for of_file in config.rules:
        rules, found = _read_file(of_file)
        (own if of_file.is_own else of_project).extend(rules)
        problems += found
    return own, of_project, problems


def _read_file(of_file: RulesOfFile) -> tuple[list[Rule], list[Problem]]:
    # In messages that agents read, too: the user's home folder is not their business.
    named = f"~/{FILE_NAME}" if of_file.is_own else str(of_file.file)
    if of_file.problem or not isinstance(of_file.raw, list) or len(of_file.raw) > MAX_RULES:
        message = of_file.problem or f"{RULES} is not a list of at most {MAX_RULES:,} rules"
        fix = f'write a list of rules: "{RULES}": [{EXAMPLE}]'
        problem = _problem(of_file.file, f"{message}, so every call is denied", fix)
        return [_denying({}, f"{RULES} of {named}", message)], [problem]
    rules: list[Rule] = []
    problems: list[Problem] = []
    for number, written in enumerate(of_file.raw, 1):
        place = f"rule {number} of {named}"
        try:
            rules.append(rule_of(written, place))
        except InvalidRequest as error:
            rules.append(_denying(written, place, f"{error.message}; {error.hint}"))
            what = f"rule {number} of {RULES} denies what it is about, because of a mistake: {error.message}"
            problems.append(_problem(of_file.file, what, error.hint))
    return rules, problems


def rule_of(written: object, place: str = "") -> Rule:
    if not isinstance(written, Mapping):
        raise InvalidRequest("it is not an object", hint=f"write {EXAMPLE}")
    for key in written:
        if key not in KEYS:
            raise InvalidRequest(
                f"{str(key)[:40]!a} is not understood", hint=f"take it out; known are {', '.join(KEYS)}"
            )
    if ("do" in written) == ("is" in written):
        raise InvalidRequest(
            "it has neither `do` nor `is`, or both", hint="`do` decides calls, `is` states the risk of tools"
        )
    if "is" in written and ("tools" not in written or "risk" in written or "client" in written):
        raise InvalidRequest(
            "`is` needs `tools`, and nothing else", hint='write {"tools": "notes__add", "is": "write"}'
        )
    return Rule(
        _pattern(written, "tools"),
        _choice(written, "risk", Risk),
        _pattern(written, "client"),
        _choice(written, "do", Effect),
        _choice(written, "is", Risk),
        place,
    )


def _pattern(written: Mapping[object, object], key: str) -> str:
    text = written.get(key, "*")
    if not isinstance(text, str) or not text:
        raise InvalidRequest(f"`{key}` is not text", hint=f"write a name or a pattern in quotes: {key}")
    if key == "tools" and SEPARATOR not in text and "*" not in text:
        hint = f'write server{SEPARATOR}tool, or "{text[:64]}{SEPARATOR}*" for all tools of a server'
        raise InvalidRequest("`tools` names no tool", hint=hint)
    return text


def _choice(written: Mapping[object, object], key: str, choices: type[T]) -> T | None:
    value = written.get(key)
    if key not in written:
        return None
    if not isinstance(value, str) or value not in [*choices]:
        raise InvalidRequest(f"`{key}` is not one of them", hint=f"use one of {', '.join(choices)}")
    return choices(value)


def _denying(written: object, place: str, problem: str) -> Rule:
    """Return a rule that denies what a rule with a mistake is about, as far as that can be read."""
    patterns = {}
    for key in ("tools", "client"):
        try:
            patterns[key] = _pattern(written, key) if isinstance(written, Mapping) else "*"
        except InvalidRequest:
            patterns[key] = "*"
    return Rule(patterns["tools"], None, patterns["client"], Effect.DENY, None, place, problem)


def _problem(file: Path, message: str, fix: str) -> Problem:
    return Problem("", file, message, fix, Severity.WARNING)
