"""Detection of secrets, and display of a server without them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import parse_qsl, urlsplit

MASK = "***"
MAX_WORDS = 4
MAX_LETTERS = 60

_SECRET_NAME = re.compile(
    r"token|secret|passw|passphrase|api[-_]?key|auth|credential|private|cookie|bearer|(^|[-_])(key|pat|pwd)$",
    re.IGNORECASE,
)
_SECRET_START = re.compile(
    r"(sk|pk|rk)[-_]\w|gh[a-z]_\w|github_pat_|xox[a-z]-|AKIA|eyJ|glpat-|npm_\w|hf_\w|AIza|-----BEGIN "
)
_REFERENCE = re.compile(r"\$\{[^{}]*\}")
_SCHEME = re.compile(r"^\s*(Bearer|Basic|Token)(\s+|$)", re.IGNORECASE)
_PLAIN = re.compile(
    r"(true|false|yes|no|none|null|on|off|\d{1,5}|(~?/|https?://[^@?]*$).*)", re.IGNORECASE | re.DOTALL
)
_NAMED = re.compile(
    r"--?(?P<option>[\w-]+)=(?P<a>.*)|(?P<variable>\w+)=(?P<b>.*)|(?P<header>[\w-]+):(?!//|\\)\s*(?P<c>.*)",
    re.DOTALL,
)


def looks_secret(name: str, value: str) -> bool:
    """Return whether a literal has the name or the form of a secret. A variable reference is not one."""
    literal = _SCHEME.sub("", _REFERENCE.sub("", value)).strip()
    if not literal or _PLAIN.fullmatch(literal):
        return False
    return bool(_SECRET_NAME.search(name) or _SECRET_START.match(literal) or _is_random(literal))


def count_secrets(entry: Mapping[str, object]) -> int:
    return sum(1 for _ in places_of_secrets(entry))


def places_of_secrets(entry: Mapping[str, object]) -> Iterator[str]:
    """Yield where an entry has a secret in clear text, such as `env.TOKEN` or `args[2]`."""
    for key in ("env", "headers", "oauth"):
        yield from (f"{key}.{name}" for name, value in _pairs(entry.get(key)) if looks_secret(name, value))
    yield from (f"args[{number}]" for number, secret in enumerate(secret_words(_words(entry))) if secret)
    if _url_has_secret(str(entry.get("url") or "")):
        yield "url"


def secret_words(words: Sequence[str]) -> list[bool]:
    """Return for each word of a command whether it contains a secret."""
    before = ["", *words]
    return [_is_secret_word(previous, word) for previous, word in zip(before, words, strict=False)]


def start_summary(entry: Mapping[str, object]) -> str:
    """Summarise how a server is started: the host of a url, or the first words of a command."""
    if url := entry.get("url"):
        return _shown_host(str(url))
    words = _words(entry)
    masked = [MASK if secret else word for word, secret in zip(words, secret_words(words), strict=True)]
    words_shown = [_cut(word) for word in [str(entry.get("command") or ""), *masked[:MAX_WORDS]]]
    return " ".join([*words_shown, "..."] if len(words) > MAX_WORDS else words_shown)


def printable(text: str) -> str:
    """Replace non-printable characters, which could control a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def host_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _is_secret_word(previous: str, word: str) -> bool:
    named = _NAMED.fullmatch(word)
    if named:
        name = named["option"] or named["variable"] or named["header"]
        return looks_secret(name, named["a"] or named["b"] or named["c"] or "")
    option = previous.lstrip("-") if previous.startswith("-") and not word.startswith("-") else ""
    return looks_secret(option, word) or _url_has_secret(word)


def _is_random(text: str) -> bool:
    digits, letters = sum(map(str.isdigit, text)), sum(map(str.isalpha, text))
    return re.fullmatch(r"[A-Za-z0-9_+=-]{24,}", text) is not None and digits > 3 and letters > 3


def _url_has_secret(text: str) -> bool:
    try:
        parts = urlsplit(text)
        if not parts.scheme or not parts.netloc:
            return False
        named = [("password", parts.password or ""), ("", parts.username or ""), *parse_qsl(parts.query)]
        secret = any(looks_secret(name, value) for name, value in named)
    except ValueError:
        return False
    return secret or any(looks_secret("", step) for step in parts.path.split("/"))


def _shown_host(url: str) -> str:
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "a url"
    if not parts.hostname or "$" in parts.netloc:
        return "a url with variables" if "${" in url else "a url"
    return _cut(f"{parts.scheme}://{parts.hostname}{port}")


def _words(entry: Mapping[str, object]) -> list[str]:
    args = entry.get("args")
    return [str(arg) for arg in args] if isinstance(args, list) else []


def _pairs(value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        yield from ((name, str(item)) for name, item in value.items())


def _cut(text: str) -> str:
    clean = printable(text)
    return clean if len(clean) <= MAX_LETTERS else clean[: MAX_LETTERS - 3] + "..."
