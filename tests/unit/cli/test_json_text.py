"""JSON for programs, in a terminal that obeys what it is shown."""

import json

import pytest

from toolscript.cli.output import json_text


@pytest.mark.parametrize("said", ["\x1b[2J", "\x9b31m", "\u202eevil", "\U000e0041tag", "line\u2028end", "日本語"])
def test_what_a_terminal_would_obey_is_escaped_and_reads_back_as_it_was(said: str) -> None:
    text = json_text({"said": said})
    assert json.loads(text) == {"said": said}
    assert not set(text) & set("\x1b\x9b\u202e\u2028\U000e0041")


def test_letters_of_every_language_stay_letters() -> None:
    assert json_text(["日本語 äöü"]) == '["日本語 äöü"]'
