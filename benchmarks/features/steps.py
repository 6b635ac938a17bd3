"""What a client does with a server: the same steps with the server itself and through a gateway."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = Mapping[str, Any]

LISTS = {
    "tools": "tools/list",
    "prompts": "prompts/list",
    "resources": "resources/list",
    "templates": "resources/templates/list",
}
FIELDS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


@dataclass(frozen=True)
class Target:
    """A server that a client starts, or one at a URL."""

    command: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    url: str = ""

    def to_json(self) -> Json:
        return {"command": [*self.command], "env": {**self.env}, "url": self.url}


@dataclass(frozen=True)
class Step:
    """A request. `feature` is the row of the table that it counts for, `key` what it is about.

    `cancel_after`: give up after so many seconds. `wait_for`: a notification that must follow.
    """

    feature: str
    key: str
    method: str
    params: Json = field(default_factory=dict)
    cancel_after: float = 0.0
    wait_for: str = ""

    @property
    def id(self) -> str:
        return f"{self.feature}: {self.key}"

    def to_json(self) -> Json:
        return {
            "id": self.id,
            "method": self.method,
            "params": {**self.params},
            "cancel_after": self.cancel_after,
            "wait_for": self.wait_for,
        }


# By the id of a step: its result or error, and what the server said and asked meanwhile.
Observed = Mapping[str, Json]


def list_steps(features: Iterable[str] = LISTS) -> list[Step]:
    return [Step(feature, "list", LISTS[feature]) for feature in features]


def follow_up_steps(listed: Observed) -> list[Step]:
    """Return steps that get every prompt and read every resource that a server lists."""
    prompts = _entries(listed, "prompts", "prompts")
    resources = _entries(listed, "resources", "resources")
    gets = [
        Step("prompts", prompt["name"], "prompts/get", {"name": prompt["name"], "arguments": _arguments(prompt)})
        for prompt in prompts
    ]
    reads = [Step("resources", entry["uri"], "resources/read", {"uri": entry["uri"]}) for entry in resources]
    return [*gets, *reads]


def _entries(listed: Observed, feature: str, name: str) -> Sequence[Json]:
    entries: Sequence[Json] = listed.get(f"{feature}: list", {}).get("result", {}).get(name, ())
    return entries


def _arguments(prompt: Json) -> dict[str, str]:
    return {argument["name"]: "1" for argument in prompt.get("arguments") or ()}
