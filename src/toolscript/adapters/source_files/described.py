"""What a file says of itself: title, authors, topics and type."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

MOST_TITLE, MOST_NAMES, MOST_NAME = 500, 50, 200
_SPACE = re.compile(r"\s+")
_BETWEEN_TOPICS = re.compile(r"[,;]")
# Between people a comma can be within a name ("Doe, Jane"), so it separates only names of several words.
_BETWEEN_PEOPLE = re.compile(r"\s*(?:;|&|\band\b)\s*")


@dataclass(frozen=True)
class Described:
    title: str = ""
    authors: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    type: str = ""


def described(fields: Mapping[str, object]) -> Described:
    """Fields as whoever wrote them has named them; whatever else is there is left alone."""
    by_name = {str(name).strip().lower(): value for name, value in fields.items()}
    return Described(
        title=one_line(_scalar(by_name.get("title"))),
        authors=_names(by_name, ("authors", "author"), people),
        topics=_names(by_name, ("topics", "tags", "keywords"), topics),
        type=one_line(_scalar(by_name.get("type")))[:MOST_NAME].lower(),
    )


def one_line(text: str, most: int = MOST_TITLE) -> str:
    return _SPACE.sub(" ", text).strip()[:most].rstrip()


def people(text: str) -> list[str]:
    parts = _BETWEEN_PEOPLE.split(text)
    split = [name for part in parts for name in _by_comma(part)]
    return _distinct(split)


def topics(text: str) -> list[str]:
    return _distinct(_BETWEEN_TOPICS.split(text))


def _by_comma(part: str) -> list[str]:
    names = part.split(",")
    return names if all(" " in name.strip() for name in names) else [part]


def _names(
    by_name: Mapping[str, object], keys: Iterable[str], split: Callable[[str], list[str]]
) -> tuple[str, ...]:
    found: list[str] = []
    for key in keys:
        value = by_name.get(key)
        if isinstance(value, str):
            found += split(value)
        elif isinstance(value, list | tuple):
            found += [_named(one) for one in value[:MOST_NAMES]]
    return tuple(_distinct(found))


def _named(one: object) -> str:
    """In a list, a person can be described by fields."""
    return _scalar(one.get("name")) if isinstance(one, dict) else _scalar(one)


def _scalar(value: object) -> str:
    return "" if value is None or isinstance(value, dict | list | tuple | set | bytes) else str(value)


def _distinct(names: Iterable[str]) -> list[str]:
    cleaned = (one_line(name, MOST_NAME) for name in names)
    return list(dict.fromkeys(name for name in cleaned if name))[:MOST_NAMES]
