"""What a language model is asked for, and what it costs."""

from dataclasses import dataclass
from typing import Protocol

from toolscript.core.items import JsonObject

PER = 1_000_000


def object_with(**properties: JsonObject) -> JsonObject:
    """All of these, and nothing else."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


@dataclass(frozen=True)
class TextUsage:
    """`failed` are those of the calls that gave no usable answer; tokens as the endpoint counts them."""

    calls: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: "TextUsage") -> "TextUsage":
        return TextUsage(
            self.calls + other.calls,
            self.failed + other.failed,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True)
class Spending:
    usage: TextUsage
    cost: float


def cost(usage: TextUsage, price_in: float, price_out: float) -> float:
    """In the currency of the prices, which are for a million tokens each."""
    return (usage.prompt_tokens * price_in + usage.completion_tokens * price_out) / PER


class TextModel(Protocol):
    """A language model: instructions and data in, an object out. The data is fenced as data."""

    @property
    def usage(self) -> TextUsage:
        """What has been asked so far, and how many tokens that took."""

    async def reply(self, instructions: str, data: str, schema: JsonObject) -> JsonObject:
        """What the model answers, an object with what the JSON schema requires; refused when it is none."""
