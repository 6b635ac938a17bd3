"""Text from outside, made safe to store and to send."""

# A NUL or a lone surrogate is legal in JSON and in no database: made visible instead of refused.
_UNSTORABLE = dict.fromkeys([0, *range(0xD800, 0xE000)], "\ufffd")


def readable(text: str) -> str:
    return text.translate(_UNSTORABLE) if not text.isascii() or "\0" in text else text
