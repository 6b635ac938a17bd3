"""What people type, rewritten to what they mean: short forms, commands of a shell, names of files, English habits.

The tables are `rewriting.toml`, written from manuals and habit, and what a person adds to them. The rewritten text
is embedded, and its words are searched; what was typed still counts where an item has just that word.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files

from toolscript.core.errors import ConfigInvalid
from toolscript.core.retrieval.terms import STOP_WORDS

# A longer text is no command that somebody typed.
MAX_COMMAND_WORDS = 8
# Prose has these words, and commands have not.
_PROSE = frozenset(
    ["a", "about", "an", "and", "for", "from", "in", "my", "of", "on", "or", "that", "the", "this", "to", "with"]
)
# A word alone: no part of a path, of an address or of an identifier.
_WORD = re.compile(r"(?<![\w./\\@:#$~-])[^\W_]+(?![\w/\\@]|[.:'’-]\w)")
_LETTERS = re.compile(r"[^\W\d_]+")
_LETTERS_OR_DIGITS = re.compile(r"[^\W_]")
# What an argument of a command looks like: a flag, a path, the name of a file, a pattern, a number, a variable.
# And what only an argument looks like: `find 3 hotels` is no command.
_ARGUMENT = re.compile(r"-{1,2}\w|[./~*\\$=]|\d+$|[A-Z][A-Z0-9_]+$")
_CERTAIN_ARGUMENT = re.compile(r"-{1,2}\w|[~./]*/|\.{1,2}$|[\w.-]*[*$=]|\S+/")
_LITERAL = re.compile(r"\d|/\w|\w/|[_$*=]")
_NUMBERS = re.compile(r"[\d\s-]+")
_ENDS_PROSE = re.compile(r"[.,;:!?]+$")
_SQL = re.compile(
    r"\s*(?:SELECT\s[^\n]*\sFROM\s|INSERT\s+INTO\s|UPDATE\s+\S+\s+SET\s|DELETE\s+FROM\s"
    r"|CREATE\s+(?:TABLE|INDEX|VIEW)\s|(?:DROP|ALTER)\s+TABLE\s|PRAGMA\s|select\s+(?:\*|count\(\*\))\s+from\s)"
)
_URL = re.compile(r"\s*https?://\S+\s*")
_QUOTED = re.compile(
    r"\"[^\"\n]{0,1000}\"|(?<!\w)'[^'\n]{0,1000}'(?!\w)|`[^`\n]{0,1000}`|“[^“”\n]{0,1000}”|https?://\S+"
)
# Possessive, so that a long run of such characters is read once.
_FILE_NAME = (
    r"(?<![\w./:@\\-])(?:~/[\w.@/-]{0,200}+|(?:[\w.@-]{1,100}+/){0,20}+(?=[\w.-]{0,100}\.)[\w-][\w.-]{0,100}"
    r"\.(?:%s))(?![\w/@])"
)
_TABLES = ("short_forms", "commands", "command_aliases", "phrases", "synonyms")
_ARGUMENTS = "{}"


def never(_word: str) -> bool:
    return False


@dataclass(frozen=True)
class Reading:
    """A request as it is meant: `text` is that, `typed` what was written.

    `meanings` maps words of `typed` that are no longer there to what they stand for. `is_command`: a shell can run
    it as it is. `says_nothing`: it has no word that a tool could be found by. `products` are services it names.
    """

    typed: str
    text: str
    rewriter: "Rewriter" = field(repr=False, compare=False)
    meanings: Mapping[str, str] = field(default_factory=dict)
    is_command: bool = False
    says_nothing: bool = False
    products: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, eq=False)
class Rewriter:
    """The tables by which requests are read."""

    short_forms: Mapping[str, str]
    commands: Mapping[str, str]
    command_aliases: Mapping[str, str]
    phrases: Mapping[str, str]
    synonyms: Mapping[str, str]
    words: Mapping[str, frozenset[str]]

    def read(self, text: str, keeps: Callable[[str], bool] = never) -> Reading:
        """Return what a text means, word by word; a text of other words is returned as it is.

        `keeps`: whether a word stays as it is typed, since a rule of a person is about it.
        """
        meanings: dict[str, str] = {}
        is_command = self._is_command(text)
        if _SQL.match(text):
            meant = f"run sql query {text}"
        elif _URL.fullmatch(text):
            meant = f"fetch web page {text.strip()}"
        elif is_command:
            meant = self._command(text, meanings)
        else:
            meant = self._phrases(self._short_forms(text, meanings, keeps))
        plain = _QUOTED.sub(" ", text)
        names = dict.fromkeys(word.casefold() for word in _WORD.findall(plain))
        says_something = self._has_literal(text) or any(map(self._says_something, _LETTERS.findall(plain)))
        return Reading(
            text,
            self._files(meant),
            self,
            meanings,
            is_command,
            says_nothing=not says_something,
            products=tuple(name for name in names if name in self.words["products"]),
        )

    def _has_literal(self, text: str) -> bool:
        return (
            _LITERAL.search(text) is not None or _QUOTED.search(text) is not None or bool(self._path.search(text))
        )

    def _says_something(self, word: str) -> bool:
        word = word.casefold()
        return len(word) > 1 and word not in STOP_WORDS and word not in self.words["say_nothing"]

    def _is_command(self, text: str) -> bool:
        """Return whether a shell could run the text as it is: it begins with a command, and is no prose."""
        first, *rest = _without_sudo(_ENDS_PROSE.sub("", text).split()) or [""]
        first = first.casefold()
        is_program = first in self.words["programs"]
        if len(rest) >= MAX_COMMAND_WORDS or not (first in self.commands or is_program):
            return False
        if not rest:
            return first not in self.words["english"] or first in self.words["alone"]
        if first in self.words["english"]:
            is_target = is_program and len(rest) == 1 and rest[0] in self.words["subcommands"]
            return is_target or self._is_certain_argument(first, rest)
        if is_program:
            is_known = rest[0] in self.words["subcommands"] and _PROSE.isdisjoint(rest)
            return is_known or _ARGUMENT.search(rest[0]) is not None
        return _ARGUMENT.search(rest[0]) is not None or _PROSE.isdisjoint(rest)

    def _is_certain_argument(self, first: str, rest: list[str]) -> bool:
        """Return whether what follows an English word makes it a command: a flag, a path, a file; and no prose."""
        is_file = self._path.fullmatch(rest[0]) is not None and rest[0].casefold() not in self.words["not_files"]
        if is_file or _CERTAIN_ARGUMENT.match(rest[0]) is not None:
            return _PROSE.isdisjoint(rest)
        return first in self.words["numbered"] and _NUMBERS.fullmatch(" ".join(rest)) is not None

    def _command(self, text: str, meanings: dict[str, str]) -> str:
        """Return what a command does, with its arguments but for flags; that of a program stays."""
        line = " ".join(_without_sudo(text.split()))
        for alias, command in self.command_aliases.items():
            if line == alias or line.startswith(f"{alias} "):
                line = command + line[len(alias) :]
        name, *arguments = line.split()
        name = name.casefold()
        if name not in self.commands:
            return line
        meaning = self.commands[name]
        meanings[name] = meaning.replace(_ARGUMENTS, "").strip()
        kept = " ".join(word for word in arguments if not word.startswith("-"))
        return meaning.replace(_ARGUMENTS, kept).strip()

    def _short_forms(self, text: str, meanings: dict[str, str], keeps: Callable[[str], bool]) -> str:
        quoted = [match.span() for match in _QUOTED.finditer(text)]

        def expanded(match: re.Match[str]) -> str:
            word = match[0].casefold()
            meaning = self.short_forms.get(word)
            if not meaning or keeps(word) or any(start <= match.start() < end for start, end in quoted):
                return match[0]
            meanings[word] = meaning
            return meaning

        return _WORD.sub(expanded, text)

    def _phrases(self, text: str) -> str:
        # Some letters match a letter that they are not, such as a Turkish dotless i.
        return self._phrase.sub(
            lambda match: self.phrases.get(" ".join(match[0].casefold().split()), match[0]), text
        )

    def _files(self, text: str) -> str:
        """Say of a name that it is one of a file, if no other word says so; `show me README.md` is to read it."""
        names = [
            match for match in self._path.finditer(text) if match[0].casefold() not in self.words["not_files"]
        ]
        rest = [word.casefold() for word in _LETTERS.findall(self._path.sub(" ", text))] if names else []
        if not names or not self.words["files_are"].isdisjoint(rest):
            return text
        if self.words["look"].issuperset(rest):
            return f"read file {text[names[0].start() :]}"
        start = names[0].start()
        return f"{text[:start]}file {text[start:]}"

    @cached_property
    def file_name(self) -> str:
        """A regular expression for names of files."""
        return _FILE_NAME % "|".join(map(re.escape, sorted(self.words["files"], key=len, reverse=True)))

    @cached_property
    def _path(self) -> re.Pattern[str]:
        return re.compile(self.file_name, re.IGNORECASE)

    @cached_property
    def _phrase(self) -> re.Pattern[str]:
        spaced = (
            r"\s+".join(map(re.escape, phrase.split())) for phrase in sorted(self.phrases, key=len, reverse=True)
        )
        return re.compile(rf"\b(?:{'|'.join(spaced) or '(?!)'})\b", re.IGNORECASE)


def _without_sudo(words: list[str]) -> list[str]:
    return words[1:] if words[:1] == ["sudo"] and len(words) > 1 else words


@cache
def default_rewriter() -> Rewriter:
    tables, words = _parsed((files(__package__) / "rewriting.toml").read_text("utf-8"))
    return Rewriter(**tables, words=words)


def rewriter_with(text: str) -> Rewriter:
    """Return the shipped tables with those of a person, in which an empty value takes an entry away.

    Words are only added.

    Raise ConfigInvalid if they cannot be read.
    """
    shipped = default_rewriter()
    try:
        own, own_words = _parsed(text)
    except (ValueError, TypeError, AttributeError) as error:
        raise ConfigInvalid(f"the table of rewritings cannot be read: {error}") from error
    for name in ("phrases", "synonyms", "short_forms", "commands"):
        if wordless := [typed for typed in own[name] if not _LETTERS_OR_DIGITS.search(typed)]:
            raise ConfigInvalid(f"[{name}] has {wordless[0]!a}, which has no word")
    if unknown := [*(own_words.keys() - shipped.words.keys())]:
        raise ConfigInvalid(f"the table of rewritings has no [words] {unknown[0]}")
    words = {name: listed | own_words.get(name, frozenset()) for name, listed in shipped.words.items()}
    tables = {name: _without_empty({**getattr(shipped, name), **own[name]}) for name in _TABLES}
    return Rewriter(**tables, words=words)


def _without_empty(table: Mapping[str, str]) -> dict[str, str]:
    return {typed: meaning for typed, meaning in table.items() if meaning}


def _parsed(text: str) -> tuple[dict[str, dict[str, str]], dict[str, frozenset[str]]]:
    table = tomllib.loads(text)
    if unknown := [*(table.keys() - {*_TABLES, "words"})]:
        raise ValueError(f"[{unknown[0]}] is none of {', '.join(_TABLES)} and words")
    tables = {name: _strings(name, table.get(name, {})) for name in _TABLES}
    words = _strings("words", table.get("words", {}))
    return tables, {name: frozenset(listed.casefold().split()) for name, listed in words.items()}


def _strings(name: str, table: object) -> dict[str, str]:
    if not isinstance(table, Mapping) or not all(isinstance(value, str) for value in table.values()):
        raise TypeError(f"[{name}] must have texts only")
    return {" ".join(str(typed).casefold().split()): str(meaning) for typed, meaning in table.items()}
