"""What a language model was asked for, and what that costs."""

from dataclasses import dataclass

PER = 1_000_000


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
