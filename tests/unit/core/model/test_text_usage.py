"""The token usage of a language model and its cost."""

import pytest

from toolscript.core.llm.model import TextUsage, cost


def test_usage_adds_up() -> None:
    total = TextUsage(1, 1, 10, 0) + TextUsage(2, 0, 5, 7)
    assert total == TextUsage(calls=3, failed=1, prompt_tokens=15, completion_tokens=7)
    assert total.tokens == 22


def test_prices_are_for_a_million_tokens_each_way() -> None:
    used = TextUsage(calls=1, prompt_tokens=2_000_000, completion_tokens=500_000)
    assert cost(used, price_in=0.15, price_out=0.6) == pytest.approx(0.6)
    assert cost(TextUsage(calls=3), 1, 1) == 0
