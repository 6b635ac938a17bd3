"""The port of language models, their token usage and its cost."""

from dataclasses import dataclass
from typing import Protocol

from toolscript.core.items import JsonObject

TOKENS_PER_PRICE = 1_000_000


def object_with(**properties: JsonObject) -> JsonObject:
    """Return the JSON schema of an object with exactly these properties, all required."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


@dataclass(frozen=True)
class TextUsage:
    """Calls and tokens. `failed` calls gave no usable response; the endpoint counts the tokens."""

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
    """Return the cost in the currency of the prices, which are per million tokens."""
    return (usage.prompt_tokens * price_in + usage.completion_tokens * price_out) / TOKENS_PER_PRICE


class TextModel(Protocol):
    """A language model: instructions and data in, a JSON object out. The data is fenced as data."""

    @property
    def usage(self) -> TextUsage:
        """The calls so far, and their tokens."""

    async def reply(self, instructions: str, data: str, schema: JsonObject) -> JsonObject:
        """Return the model's response, an object with all required properties; raise Rejected if it is none."""
