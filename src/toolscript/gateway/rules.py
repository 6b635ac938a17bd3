"""Which calls are made: the risk of a tool, and the rules of people. One engine for every way to call a tool.

The first rule that fits decides, in the order of the user's file; without one the call is made. The rules of a
project decide by themselves, and the stricter of both decisions counts: a project can take away, and never give.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from toolscript.core.errors import Forbidden
from toolscript.core.items import Item, JsonObject, tool_id
from toolscript.core.text import visible

# In the details of an error: what a person has to confirm, and the limit that a call has set itself.
CONFIRMATION, MAX_RISK = "confirmation", "max_risk"
MAX_NAME = 200


class Risk(StrEnum):
    """What a tool may do at worst, from the least to the most."""

    READ = "read"
    WRITE = "write"
    DESTRUCTIVE = "destructive"


class Basis(StrEnum):
    """Why a tool counts as it does. A claim is its server's; nothing has checked it."""

    RULE = "rule"
    CLAIM = "claim"
    UNAPPROVED = "unapproved"
    NO_CLAIM = "no_claim"


class Effect(StrEnum):
    """What a rule does with a call, from the laxest to the strictest."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


_OTHER_WILDCARDS = re.compile(r"[\[?]")
_RISKS, _EFFECTS = [*Risk], [*Effect]
_SHOWN = {
    (Risk.READ, Basis.CLAIM): "claims read-only",
    (Risk.WRITE, Basis.CLAIM): "claims non-destructive",
    (Risk.DESTRUCTIVE, Basis.CLAIM): "claims destructive",
    (Risk.DESTRUCTIVE, Basis.UNAPPROVED): "destructive: its definition is not approved",
    (Risk.DESTRUCTIVE, Basis.NO_CLAIM): "destructive: it claims nothing",
}


@dataclass(frozen=True)
class ToolRisk:
    level: Risk
    basis: Basis

    @property
    def shown(self) -> str:
        """The risk in words. They never say that a tool is what it only claims to be."""
        return _SHOWN.get((self.level, self.basis)) or f"{self.level}, as a rule says"

    @property
    def shown_in_results(self) -> str:
        """The risk in words where it is less than what every tool without a claim counts as."""
        return "" if self.level is Risk.DESTRUCTIVE else self.shown

    def exceeds(self, limit: Risk) -> bool:
        return _RISKS.index(self.level) > _RISKS.index(limit)

    def to_json(self) -> dict[str, str]:
        return {"level": self.level.value, "basis": self.basis.value}

    @classmethod
    def from_json(cls, data: Mapping[str, str]) -> "ToolRisk":
        return cls(Risk(data["level"]), Basis(data["basis"]))


@dataclass(frozen=True)
class Rule:
    """`do` decides calls, `states` says what risk tools have; a rule has one of both.

    `tools` and `client` are patterns with `*`. `place` names the rule in messages. A rule with a mistake, which is
    `problem`, denies what it may have been about: a mistake must not let a call through.
    """

    tools: str = "*"
    risk: Risk | None = None
    client: str = "*"
    do: Effect | None = None
    states: Risk | None = None
    place: str = ""
    problem: str = ""

    def is_about(self, item: Item) -> bool:
        return _fits(tool_id(item.server, item.name), self.tools)

    def decides(self, item: Item, risk: Risk, client: str) -> bool:
        return (
            self.do is not None
            and self.is_about(item)
            and self.risk in (None, risk)
            and _fits(client.casefold(), self.client.casefold())
        )


@dataclass(frozen=True)
class Decision:
    """`rule` is None where none fits."""

    effect: Effect
    risk: ToolRisk
    rule: Rule | None = None

    @property
    def reason(self) -> str:
        return self.rule.place if self.rule else "no rule fits"


def claimed_risk(annotations: JsonObject | None) -> ToolRisk:
    """Return what annotations claim. The protocol's default for a tool that claims nothing is destructive."""
    claims = annotations or {}
    if claims.get("destructiveHint") is True:
        return ToolRisk(Risk.DESTRUCTIVE, Basis.CLAIM)
    if claims.get("readOnlyHint") is True:
        return ToolRisk(Risk.READ, Basis.CLAIM)
    if claims.get("destructiveHint") is False:
        return ToolRisk(Risk.WRITE, Basis.CLAIM)
    return ToolRisk(Risk.DESTRUCTIVE, Basis.NO_CLAIM)


class CallRules:
    """The rules of a user and of a project. `is_approved`: whether a person approved this definition."""

    def __init__(
        self,
        own: Sequence[Rule] = (),
        of_project: Sequence[Rule] = (),
        is_approved: Callable[[Item], bool] = lambda _item: True,
    ) -> None:
        self.own = tuple(own)
        self.of_project = tuple(of_project)
        self._is_approved = is_approved

    @property
    def is_empty(self) -> bool:
        """Whether every call is made."""
        return not any(rule.do for rule in (*self.own, *self.of_project))

    def risk(self, item: Item) -> ToolRisk:
        return max([self._own_risk(item), *self._raised(item)], key=_level)

    def decide(self, item: Item, client: str) -> Decision:
        """Decide about a call. A risk that a project raises can make a decision stricter, and never laxer."""
        own, risk = self._own_risk(item), self.risk(item)
        decisions = (
            _first(self.own, item, risk, client),
            _first(self.own, item, own, client),
            _first(self.of_project, item, risk, client),
        )
        strictest = max(decisions, key=lambda decision: _EFFECTS.index(decision.effect))
        return Decision(strictest.effect, risk, strictest.rule)

    def _own_risk(self, item: Item) -> ToolRisk:
        for rule in self.own:
            if rule.states is not None and rule.is_about(item):
                return ToolRisk(rule.states, Basis.RULE)
        claimed = claimed_risk(item.annotations)
        if claimed.level is Risk.DESTRUCTIVE or self._is_approved(item):
            return claimed
        return ToolRisk(Risk.DESTRUCTIVE, Basis.UNAPPROVED)

    def _raised(self, item: Item) -> Iterator[ToolRisk]:
        for rule in self.of_project:
            if rule.states is not None and rule.is_about(item):
                yield ToolRisk(rule.states, Basis.RULE)


def _fits(text: str, pattern: str) -> bool:
    """Only `*` stands for something else than itself: a tool may be called `read[1]`."""
    return fnmatchcase(text, _OTHER_WILDCARDS.sub(r"[\g<0>]", pattern))


def _level(risk: ToolRisk) -> int:
    return _RISKS.index(risk.level)


def _first(rules: Sequence[Rule], item: Item, risk: ToolRisk, client: str) -> Decision:
    for rule in rules:
        if rule.decides(item, risk.level, client):
            return Decision(rule.do or Effect.DENY, risk, rule)
    return Decision(Effect.ALLOW, risk)


def require_allowed(decision: Decision, item: Item, *, confirmed: bool, limit: Risk | None = None) -> None:
    """Raise Forbidden for a call that is not made. What a person confirmed is made, unless a rule denies it."""
    tool, risk = tool_id(item.server, item.name), decision.risk
    name = visible(tool)[:MAX_NAME]
    details = {"tool": tool, "risk": risk.level.value}
    if decision.effect is Effect.DENY:
        mistake = (
            f", which has a mistake: {decision.rule.problem}" if decision.rule and decision.rule.problem else ""
        )
        raise Forbidden(
            f"{decision.reason} denies this call of {name}{mistake}",
            hint=f"do without it; a person can change the rule, and `toolscript rules test {name}` explains it",
            details=details,
        )
    if limit is not None and risk.exceeds(limit):
        raise Forbidden(
            f"{name} counts as {risk.level}, and the limit of this call is {limit}",
            hint="a person can state the risk of a tool by a rule",
            details={**details, MAX_RISK: limit.value},
        )
    if decision.effect is Effect.ASK and not confirmed:
        raise Forbidden(
            f"a person must allow this call of {name} ({risk.shown}), says {decision.reason}",
            hint="ask the person to allow it by a rule, or to make the call in a terminal with `toolscript call`",
            details={**details, CONFIRMATION: {"risk": risk.shown, "rule": decision.reason}},
        )
