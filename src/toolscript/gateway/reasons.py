"""The reason of a hit, in one line that a person can check."""

from collections.abc import Set

from toolscript.core.retrieval.curation import Rule
from toolscript.core.retrieval.request import Request
from toolscript.gateway.capabilities import Inferred
from toolscript.gateway.index import EXACT_BUT_FOR_CASE, StemsByField
from toolscript.gateway.model import ScoreParts, WordMatch

SEMANTIC_ENOUGH = 0.3
MAX_WORDS = 4
FIELDS = ("name", "server", "description", "parameter", "parameter_text")


def matched_words(stems: StemsByField, request: Request) -> tuple[WordMatch, ...]:
    """Return each matched query word, as typed, with the first field that contains it."""
    return tuple(
        WordMatch(word, field)
        for word, stem in request.stems_of_words.items()
        if (field := _field_of_word(stem, stems, request))
    )


def _field_of_word(stem: int, stems: StemsByField, request: Request) -> str:
    """Return the first field that has the word, or else, if the item has what it means, a word of that."""
    if field := next((field for field in FIELDS if stem in stems[field]), ""):
        return field
    meanings = request.meanings_of(stem)
    of_item = frozenset().union(*stems.values()) if meanings else frozenset()
    return next((_field_of(meaning.stems, stems) for meaning in meanings if meaning.is_in(of_item)), "")


def _field_of(wanted: Set[int], stems: StemsByField) -> str:
    return next((field for field in FIELDS if wanted & stems[field]), "")


def reason(parts: ScoreParts, cause: Inferred | Rule | None, request: Request, domain: str) -> str:
    """`cause`: what decided about the item apart from its text, a person's rule or a capability."""
    if isinstance(cause, Rule):
        return cause.reason[0].upper() + cause.reason[1:]
    if parts.fuzzy >= EXACT_BUT_FOR_CASE:
        return "Exact name"
    if cause is not None:
        return f"Capability inference ({cause.kind} → {cause.capability})"
    return " + ".join(_evidence(parts, request)) + (f" ({domain})" if domain else "")


def _evidence(parts: ScoreParts, request: Request) -> list[str]:
    evidence = []
    if parts.fuzzy:
        evidence.append("Fuzzy match of the name")
    if parts.semantic is not None and parts.semantic >= SEMANTIC_ENOUGH:
        evidence.append("Semantic similarity")
    matched = [match.word for match in parts.matched]
    if words := [_read_as(word, request) for word in matched][:MAX_WORDS]:
        evidence.append(f"words {', '.join(words)}")
    if not evidence:
        return ["No word in common" if parts.semantic is None else "Nearest by meaning"]
    return [evidence[0][0].upper() + evidence[0][1:], *evidence[1:]]


def _read_as(word: str, request: Request) -> str:
    """Return a word with what it was read as, if that is another one."""
    meanings = request.meanings_of(request.stem_of(word))
    read_as = (
        [request.corrections[word]] if word in request.corrections else [meaning.text for meaning in meanings]
    )
    return f"{word} as {read_as[0]}" if read_as else word
