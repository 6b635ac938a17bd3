"""Text from outside, made safe to store, to send, and to show to people and models; and chunks of text."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

# A NUL or a lone surrogate is legal in JSON, but no database stores it: replaced instead of refused.
_UNSTORABLE = dict.fromkeys([0, *range(0xD800, 0xE000)], "\ufffd")

# Invisible characters, and those that change the text direction: control characters except tab and line feed,
# format and private-use characters, fillers, variation selectors and tags. Each has been used to hide words.
_UNSEEN = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\xad\\u034f\\u0600-\\u0605\\u061c\\u06dd\\u070f\\u0890\\u0891\\u08e2"
    "\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u2800\\u3164"
    "\\ud800-\\udfff\\ue000-\\uf8ff\\ufdd0-\\ufdef\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb\\ufffe\\uffff"
    "\\U000110bd\\U000110cd\\U00013430-\\U0001345f\\U0001bca0-\\U0001bca3\\U0001d173-\\U0001d17a"
    "\\U000e0000-\\U0010ffff]+"
)
_JOINERS = ("\u200c", "\u200d")
_PICTURE_STYLES = ("\ufe0e", "\ufe0f")
# Languages and emoji that need a joiner have it between two of their characters; a style follows one.
_TAKES_STYLE = "0123456789#*"
_SPELT_OUT = 4
MAX_JSON_DEPTH = 200


def readable(text: str) -> str:
    return text.translate(_UNSTORABLE) if not text.isascii() or "\0" in text else text


def visible(text: str) -> str:
    """Return the text with invisible characters spelled out: `[U+202E]`, or their number if there are many."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.isascii() and text.isprintable():
        return text
    return _UNSEEN.sub(lambda match: _spell_out(match, text), text)


def has_invisible(text: str) -> bool:
    """Return whether the text has invisible characters; line ends of any kind are visible."""
    return visible(text) != text.replace("\r\n", "\n").replace("\r", "\n")


def visible_json(value: object, depth: int = 0) -> object:
    """Apply `visible` to every string of a JSON value, keys included; cut off what is nested too deeply."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping | list | tuple) and depth == MAX_JSON_DEPTH:
        return "[nested deeper than this]"
    if isinstance(value, Mapping):
        return {visible(str(key)): visible_json(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [visible_json(inner, depth + 1) for inner in value]
    return value


def _spell_out(match: re.Match[str], text: str) -> str:
    unseen = match[0]
    if len(unseen) == 1 and _belongs(
        unseen, text[max(0, match.start() - 1) : match.start()], text[match.end() : match.end() + 1]
    ):
        return unseen
    if len(unseen) > _SPELT_OUT:
        return f"[{len(unseen)} invisible characters]"
    return "".join(f"[U+{ord(char):04X}]" for char in unseen)


def _belongs(unseen: str, before: str, after: str) -> bool:
    if unseen in _JOINERS:
        return not before.isascii() and not after.isascii() and not (before + after).isspace()
    return unseen in _PICTURE_STYLES and bool(before) and (not before.isascii() or before in _TAKES_STYLE)


@dataclass(frozen=True)
class TextChunk:
    """A chunk of a document's text, from `start` up to but excluding `end`."""

    number: int
    start: int
    end: int
    text: str
