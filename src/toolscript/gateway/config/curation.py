"""The `curation` of config files: its rules, and what is wrong with them. A rule with a mistake has no effect."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from toolscript.core.errors import InvalidRequest
from toolscript.core.items import split_tool_id, tool_id
from toolscript.core.retrieval.curation import MAX_RULES, Curation, Rule, RuleKind
from toolscript.gateway.config.problems import Problem, Severity
from toolscript.gateway.config.read import CURATION, Config

KEYS = ("kind", "words", "tool", "means", "mutual")
EXAMPLE = '{"kind": "promote", "tool": "server__tool", "words": "..."}'


class NumberedRule(NamedTuple):
    """`number` is the place of the rule in its file, from 1."""

    number: int
    rule: Rule


def curation_of(config: Config) -> tuple[Curation, list[Problem]]:
    """Return the rules of all files, the user's first, at most MAX_RULES."""
    rules: list[Rule] = []
    problems: list[Problem] = []
    for file, raw in config.curation:
        numbered, found = read_rules(raw, file)
        rules += [rule for _, rule in numbered]
        problems += found
        if len(rules) > MAX_RULES:
            fix = "remove those that no request needs"
            problems.append(_problem(file, f"{CURATION} has more than {MAX_RULES:,} rules; the others count", fix))
            break
    return Curation(dict.fromkeys(rules[:MAX_RULES])), problems


def read_rules(raw: object, file: Path) -> tuple[list[NumberedRule], list[Problem]]:
    if not isinstance(raw, list):
        return [], [_problem(file, f"{CURATION} is not a list", f"write a list of rules: [{EXAMPLE}]")]
    rules: list[NumberedRule] = []
    problems: list[Problem] = []
    for number, written in enumerate(raw, 1):
        try:
            rules.append(NumberedRule(number, rule_of(written)))
            problems += _unknown_keys(written, number, file)
        except InvalidRequest as error:
            problems.append(
                _problem(file, f"rule {number} of {CURATION} has no effect: {error.message}", error.hint)
            )
    return rules, problems


def rule_of(written: object) -> Rule:
    if not isinstance(written, Mapping):
        raise InvalidRequest("it is not an object", hint=f"write {EXAMPLE}")
    kind = written.get("kind")
    if kind not in list(RuleKind):
        raise InvalidRequest("`kind` is not one of them", hint=f"use one of {', '.join(RuleKind)}")
    for key in ("words", "tool", "means"):
        if not isinstance(written.get(key, ""), str):
            raise InvalidRequest(f"`{key}` is not text", hint=f"write {key} in quotes")
    if not isinstance(mutual := written.get("mutual", False), bool):
        raise InvalidRequest("`mutual` is neither true nor false", hint="write true or false, without quotes")
    tool = written.get("tool")
    named = tool_id(*split_tool_id(tool)) if tool else None
    return Rule(RuleKind(kind), written.get("words", ""), named, written.get("means", ""), mutual)


def rule_to_json(rule: Rule) -> dict[str, object]:
    """Return a rule as it is written in a file, without what it does not have."""
    fields = {
        "kind": rule.kind.value,
        "words": rule.words,
        "tool": rule.tool,
        "means": rule.means,
        "mutual": rule.mutual,
    }
    return {key: value for key, value in fields.items() if value}


def _unknown_keys(written: object, number: int, file: Path) -> Iterator[Problem]:
    keys: Sequence[object] = [*written] if isinstance(written, Mapping) else []
    for key in keys:
        if key not in KEYS:
            shown = ascii(str(key)[:40])
            fix = f"take it out; known are {', '.join(KEYS)}"
            yield _problem(file, f"{shown} in rule {number} of {CURATION} is not understood", fix)


def _problem(file: Path, message: str, fix: str) -> Problem:
    return Problem("", file, message, fix, Severity.WARNING)
