"""JSON output without terminal control characters."""

import json

import pytest

from toolscript.cli.output import json_text


@pytest.mark.parametrize(
    "content", ["\x1b[2J", "\x9b31m", "\u202eevil", "\U000e0041tag", "line\u2028end", "日本語"]
)
def test_control_characters_are_escaped_and_parse_back_unchanged(content: str) -> None:
    text = json_text({"said": content})
    assert json.loads(text) == {"said": content}
    assert not set(text) & set("\x1b\x9b\u202e\u2028\U000e0041")


def test_letters_of_every_language_stay_letters() -> None:
    assert json_text(["日本語 äöü"]) == '["日本語 äöü"]'
