"""Curation by hand: rules that promote a tool, exclude one, or give words a meaning, for requests with some words.

A rule applies to a request that has all its words, in any order and in any form with the same stem; stop words do
not count. Synonyms apply first, once, and never to each other: promotions and exclusions also match what they add.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from toolscript.core.errors import InvalidRequest
from toolscript.core.retrieval.request import Pattern, Request, Synonym, pattern_of, with_synonyms
from toolscript.core.retrieval.terms import terms_of_word
from toolscript.core.text import has_invisible, readable

# Of one catalog: the config files of a gateway, or a namespace of the service.
MAX_RULES = 1_000
MAX_LETTERS, MAX_WORDS = 200, 20
MAX_TOOL_LETTERS = 300


class RuleKind(StrEnum):
    """What a rule does: put a tool first, say what words mean, or never return a tool."""

    PROMOTE = "promote"
    SYNONYM = "synonym"
    NEVER = "never"


# How a catalog names a tool: the gateway as `server__tool`, the service by its id.
Tool = str | int


@dataclass(frozen=True)
class Rule:
    """`tool` belongs to a promotion and to `never`; `means` and `mutual` belong to a synonym.

    A mutual synonym is one the other way, too. `words` and `means` are single lines, with single spaces.
    """

    kind: RuleKind
    words: str
    tool: Tool | None = None
    means: str = ""
    mutual: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", _valid_words("words", self.words))
        if self.kind is RuleKind.SYNONYM:
            self._check_synonym()
        else:
            self._check_tool()

    def _check_synonym(self) -> None:
        if self.tool is not None:
            raise _invalid("tool", "is not for a synonym", "leave it out")
        object.__setattr__(self, "means", _valid_words("means", self.means))
        if pattern_of(self.words).stems == pattern_of(self.means).stems:
            raise _invalid("means", "has the same words as `words`", "leave the rule out")

    def _check_tool(self) -> None:
        if self.tool in (None, ""):
            raise _invalid("tool", "is missing", "name the tool that the rule is about")
        if isinstance(self.tool, str):
            object.__setattr__(self, "tool", _valid_line("tool", self.tool, MAX_TOOL_LETTERS))
        for field, value in (("means", self.means), ("mutual", self.mutual)):
            if value:
                raise _invalid(field, "is only for a synonym", "leave it out")

    @property
    def reason(self) -> str:
        """What the rule does, in a few words."""
        if self.kind is RuleKind.SYNONYM:
            also = ", and the other way" if self.mutual else ""
            return f"`{self.words}` means `{self.means}`{also}"
        return f"{'promoted' if self.kind is RuleKind.PROMOTE else 'never'} for `{self.words}`"


def _valid_words(field: str, text: str) -> str:
    line = _valid_line(field, text, MAX_LETTERS)
    words = pattern_of(line).words
    if not words:
        raise _invalid(
            field, "has no word that tells requests apart", "use a word like `ticket`, not `to` or `my`"
        )
    if len(words) > MAX_WORDS:
        raise _invalid(field, f"has more than {MAX_WORDS} words", "a few words match more requests")
    return line


def _valid_line(field: str, text: str, max_letters: int) -> str:
    line = " ".join(readable(text).split())
    if not line:
        raise _invalid(field, "is blank", "write at least one word")
    if len(line) > max_letters:
        raise _invalid(field, f"is longer than {max_letters} characters", "a few words match more requests")
    if has_invisible(line) or "`" in line:
        raise _invalid(field, "has invisible characters or backticks", "write plain words")
    return line


def _invalid(field: str, what: str, hint: str) -> InvalidRequest:
    return InvalidRequest(f"`{field}` of a rule {what}", hint=hint, details={"field": field})


def too_many_rules() -> InvalidRequest:
    return InvalidRequest(f"there are more than {MAX_RULES:,} rules", hint="remove those that no request needs")


@dataclass(frozen=True)
class CuratedRequest:
    """A request with its synonyms, and the rules that apply to it. A tool is not both promoted and excluded.

    `steps` are its sub-queries, each with the rules that apply to it alone.
    """

    request: Request
    promoted: Mapping[Tool, Rule]
    excluded: Mapping[Tool, Rule]
    synonyms: tuple[Rule, ...] = ()
    steps: "tuple[CuratedRequest, ...]" = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What each rule did to the results."""
        about_tools = (*self.promoted.items(), *self.excluded.items())
        return (
            *(rule.reason for rule in self.synonyms),
            *(
                f"{f'tool {tool}' if isinstance(tool, int) else tool} is {rule.reason}"
                for tool, rule in about_tools
            ),
        )


@dataclass(frozen=True)
class _Entry:
    """A rule by the pattern it applies to. A mutual synonym has two, each with the meaning of the other."""

    pattern: Pattern
    rule: Rule
    meaning: Pattern

    @classmethod
    def of(cls, rules: Iterable[Rule]) -> "Iterator[_Entry]":
        for rule in rules:
            words, means = pattern_of(rule.words), pattern_of(rule.means)
            yield cls(words, rule, means)
            if rule.mutual:
                yield cls(means, rule, words)


class Curation:
    """The rules of a catalog. A request is compared only with rules whose rarest word it has."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self.rules = tuple(rules)
        entries = [*_Entry.of(self.rules)]
        self._stems = frozenset[int]().union(*(entry.pattern.stems for entry in entries))
        self._synonyms = _by_stem(entry for entry in entries if entry.rule.kind is RuleKind.SYNONYM)
        self._about_tools = _by_stem(entry for entry in entries if entry.rule.kind is not RuleKind.SYNONYM)

    def unless_known(self, corrections: Mapping[str, str]) -> Mapping[str, str]:
        """Return the corrections but for words of a rule: these are not misspelt, even if no tool has them."""
        if not self.rules:
            return corrections
        return {word: corrections[word] for word in corrections if not self.knows(terms_of_word(word)[0])}

    def knows(self, stem: int) -> bool:
        """Return whether a rule applies to the word, which is then not misspelt."""
        return stem in self._stems

    def is_about(self, word: str) -> bool:
        return bool(self.rules) and self.knows(terms_of_word(word)[0])

    def apply(self, request: Request) -> CuratedRequest:
        steps = tuple(map(self.apply, request.steps))
        if not self.rules:
            return CuratedRequest(request, {}, {}, steps=steps)
        stems = request.whole.stems | request.typed_stems
        synonyms = _matching(self._synonyms, stems)
        widened = stems.union(*(entry.meaning.stems for entry in synonyms))
        about_tools = [entry.rule for entry in _matching(self._about_tools, widened)]
        excluded = {rule.tool: rule for rule in about_tools if rule.kind is RuleKind.NEVER and rule.tool}
        return CuratedRequest(
            with_synonyms(request, [Synonym(entry.pattern, entry.meaning) for entry in synonyms], as_meant=True),
            {rule.tool: rule for rule in about_tools if rule.tool and rule.tool not in excluded},
            excluded,
            tuple(dict.fromkeys(entry.rule for entry in synonyms)),
            steps,
        )


_EntriesByStem = Mapping[int, Sequence[_Entry]]


def _by_stem(entries: Iterable[_Entry]) -> _EntriesByStem:
    """Return the entries by a stem without which no request matches, the one that the fewest entries have.

    Every entry of an identifier has two such stems: of its parts, and of the whole.
    """
    listed = list(entries)
    counts = Counter(stem for entry in listed for stem in entry.pattern.stems)
    by_stem: dict[int, list[_Entry]] = {}
    for entry in listed:
        choices = [
            {min(parts, key=counts.__getitem__), *(() if whole is None else (whole,))}
            for parts, whole in entry.pattern.words
        ]
        for stem in min(choices, key=lambda stems: sum(counts[stem] for stem in stems)):
            by_stem.setdefault(stem, []).append(entry)
    return by_stem


def _matching(entries: _EntriesByStem, stems: frozenset[int]) -> list[_Entry]:
    """Return the entries whose words are all among the stems, each once, in a fixed order."""
    near = (entry for stem in stems if stem in entries for entry in entries[stem])
    matching = {id(entry): entry for entry in near if entry.pattern.is_in(stems)}
    return sorted(
        matching.values(), key=lambda entry: (entry.pattern.text, entry.meaning.text, str(entry.rule.tool))
    )


NO_CURATION = Curation()
