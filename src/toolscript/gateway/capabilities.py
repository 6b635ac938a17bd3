"""Capability inference: a table of what general tools can do beyond their descriptions (a shell runs git)."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files

from toolscript.core.errors import ConfigInvalid
from toolscript.core.retrieval.terms import terms_of_word, words_of
from toolscript.gateway.index import name_parts

# A shell can do nearly everything, so it never outranks a tool whose description matches the request.
SURE, LIKELY = 0.62, 0.5
MIN_SHARE = 0.5
SHELL = "shell"
# Words that do not change which kind of tool a name denotes.
SAY_LITTLE = frozenset(
    {
        "a",
        "in",
        "the",
        "run",
        "execute",
        "exec",
        "command",
        "commands",
        "tool",
        "start",
        "process",
        "script",
        "local",
    }
)


@dataclass(frozen=True)
class Capability:
    says: str
    surely: frozenset[int]
    perhaps: frozenset[int]

    def strength(self, stems: frozenset[int]) -> float:
        """Return the confidence that a query with these stems needs it: they must be most of the query."""
        sure, likely = len(stems & self.surely), len(stems & self.perhaps)
        if sure + likely < MIN_SHARE * len(stems):
            return 0.0
        if sure and likely:
            return SURE
        return LIKELY if sure or likely > 1 else 0.0


@dataclass(frozen=True)
class General:
    """A kind of general tool: words in its names, words in its servers' names, and its capabilities."""

    kind: str
    names: tuple[frozenset[str], ...]
    servers: tuple[frozenset[str], ...]
    does: tuple[str, ...]

    def includes(self, name: frozenset[str], server: frozenset[str]) -> bool:
        """`run_shell_command` is a shell; `shell_history` is not."""
        named = any(words <= name and name - words <= SAY_LITTLE for words in self.names)
        return named or any(words <= server for words in self.servers)


@dataclass(frozen=True)
class Inferred:
    """A general tool that can do what the query asks for."""

    confidence: float
    kind: str
    capability: str


@dataclass(frozen=True)
class Capabilities:
    general: tuple[General, ...]
    known: Mapping[str, Capability]

    def asked_by(self, words: Sequence[str], *, is_command: bool = False) -> list[tuple[General, Inferred]]:
        """Return the kinds of general tools that can do what these words ask for, each with its best reason.

        `is_command`: the words are a command of a shell, which can run any.
        """
        if is_command and (shells := [general for general in self.general if general.kind == SHELL]):
            return [(shell, Inferred(SURE, SHELL, "commands")) for shell in shells]
        stems = frozenset(terms_of_word(word)[0] for word in words)
        named = {name for stem in stems if stem in self._by_stem for name in self._by_stem[stem]}
        strengths = {name: strength for name in named if (strength := self.known[name].strength(stems))}
        if not strengths:
            return []
        return [(general, best) for general in self.general if (best := self._best(general, strengths))]

    def _best(self, general: General, strengths: Mapping[str, float]) -> Inferred | None:
        able = [name for name in general.does if name in strengths]
        if not able:
            return None
        best = max(able, key=strengths.__getitem__)
        return Inferred(strengths[best], general.kind, self.known[best].says)

    @cached_property
    def _by_stem(self) -> Mapping[int, Sequence[str]]:
        """The capabilities that a stem speaks for: a request has words of few."""
        by_stem: dict[int, list[str]] = {}
        for name, capability in self.known.items():
            for stem in capability.surely | capability.perhaps:
                by_stem.setdefault(stem, []).append(name)
        return by_stem


@cache
def default_capabilities() -> Capabilities:
    return capabilities_of((files(__package__) / "capabilities.toml").read_text("utf-8"))


def capabilities_of(text: str) -> Capabilities:
    """Parse the table, which a person may have written; raise ConfigInvalid."""
    try:
        table = tomllib.loads(text)
        capabilities = {name: _capability(entry) for name, entry in table["capability"].items()}
        general = tuple(_generals(table["general"]))
        missing = sorted({name for tool_kind in general for name in tool_kind.does} - set(capabilities))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigInvalid(f"the table of capabilities cannot be read: {error}") from error
    if missing:
        raise ConfigInvalid(f"the table of capabilities has no [capability.{missing[0]}]")
    return Capabilities(general, capabilities)


def _generals(table: Mapping[str, Mapping[str, object]]) -> Iterator[General]:
    for kind, entry in table.items():
        names, servers = _word_sets(kind, entry["names"]), _word_sets(kind, entry.get("servers", []))
        yield General(kind, names, servers, tuple(_list(entry["does"])))


def _word_sets(kind: str, names: object) -> tuple[frozenset[str], ...]:
    sets = tuple(name_parts(name) for name in _list(names))
    if not all(sets):
        # An empty set would be a subset of every tool's words.
        raise ValueError(f"a name of [general.{kind}] has no word in it")
    return sets


def _capability(data: Mapping[str, object]) -> Capability:
    return Capability(str(data["says"]), _stems(data["surely"]), _stems(data["perhaps"]))


def _stems(words: object) -> frozenset[int]:
    return frozenset(terms_of_word(part)[0] for word in _list(words) for part in words_of(word))


def _list(words: object) -> list[str]:
    if not isinstance(words, list):
        raise TypeError(f"{words!r} must be a list")
    return [str(word) for word in words]
