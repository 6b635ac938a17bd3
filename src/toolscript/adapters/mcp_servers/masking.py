"""Keeps what may be secret in a server's entry out of what is shown about it."""

import re
from urllib.parse import parse_qsl, urlsplit

from toolscript.model.servers import ServerSpec

MASK = "***"
# Shorter values are words like `1` or `true`: no secrets, and masking them would blot out half a message.
_SHORTEST = 6
_HEADER_FLAGS = frozenset({"header", "h"})
_SECRET_FLAG = re.compile(r"(key|token|secret|password|passwd|credential|auth|bearer)", re.IGNORECASE)


def masked(text: str, spec: ServerSpec) -> str:
    for secret in sorted(_secrets(spec), key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def _secrets(spec: ServerSpec) -> set[str]:
    named = [*spec.env.values(), *spec.headers.values(), *_of_arguments(spec.args), *_of_url(spec.url)]
    # `Bearer abc` is a secret as a whole, and so is `abc`.
    words = [word for value in named for word in (value, value.rpartition(" ")[2])]
    return {word for word in words if len(word) >= _SHORTEST}


def _of_arguments(args: tuple[str, ...]) -> list[str]:
    secrets = []
    for before, given in zip(("", *args), args, strict=False):
        flag, equals, value = given.partition("=")
        if equals and _SECRET_FLAG.search(flag):
            secrets.append(value)
        elif before.startswith("-") and _SECRET_FLAG.search(before):
            secrets.append(given)
        header, colon, value = given.partition(":")
        if colon and (before.lstrip("-").lower() in _HEADER_FLAGS or _SECRET_FLAG.search(header)):
            secrets.append(value.strip())
        secrets += _of_url(given) if "://" in given else []
    return secrets


def _of_url(url: str) -> list[str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return [url]
    return [value for _, value in parse_qsl(parts.query)] + [parts.username or "", parts.password or ""]
