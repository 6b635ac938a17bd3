"""What stands before a text in YAML between lines of `---`, or in TOML between lines of `+++`."""

import re
import tomllib
from dataclasses import dataclass

import yaml

from toolscript.adapters.source_files.described import Described, described

MOST_LETTERS = 64 * 1024
_YAML = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_TOML = re.compile(r"\A\+\+\+[ \t]*\n(.*?)^\+\+\+[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_NAMED = re.compile(r"^([A-Za-z]+):[ \t]+(\S.*?)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class FrontMatter:
    """`end` is where the text begins after it; 0 where there is none."""

    says: Described
    end: int


def front_matter(text: str) -> FrontMatter:
    """A block that says nothing sensible belongs to the text: a line can be drawn at the top of any."""
    for pattern, read in ((_YAML, _from_yaml), (_TOML, _from_toml)):
        found = pattern.match(text, 0, MOST_LETTERS)
        fields = read(found.group(1)) if found else None
        if found and isinstance(fields, dict):
            return FrontMatter(described(fields), found.end())
    return FrontMatter(Described(), 0)


class _PlainLoader(yaml.SafeLoader):
    """Names that refer to each other can fill any memory, and nobody writes them above a text."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("an alias")
        return super().compose_node(parent, index)


def _from_yaml(text: str) -> object:
    try:
        return yaml.load(text, _PlainLoader)  # noqa: S506 - it makes nothing but plain values
    except (yaml.YAMLError, ValueError, RecursionError):
        return _line_by_line(text)


def _line_by_line(text: str) -> dict[str, str] | None:
    """People write `title: One: and another`, which is no YAML."""
    found = {name.lower(): value.strip("'\"") for name, value in _NAMED.findall(text)}
    return found or None


def _from_toml(text: str) -> object:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return None
