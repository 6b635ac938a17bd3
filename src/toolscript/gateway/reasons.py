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
    """Return each matched query word, as typed, with the first field that contains it and what it was read as."""
    matches = (_match(word, stem, stems, request) for word, stem in request.stems_of_words.items())
    return tuple(match for match in matches if match)


def _match(word: str, stem: int, stems: StemsByField, request: Request) -> WordMatch | None:
    """Return the first field that has the word, or else, if the item has what it means, a word of that."""
    for field in FIELDS:
        if stem in stems[field]:
            return WordMatch(word, field, request.corrections.get(word, ""))
    meanings = request.meanings_of(stem)
    of_item = frozenset().union(*stems.values()) if meanings else frozenset()
    meaning = next((meaning for meaning in meanings if meaning.is_in(of_item)), None)
    return None if meaning is None else WordMatch(word, _field_of(meaning.stems, stems), meaning.text)


def _field_of(wanted: Set[int], stems: StemsByField) -> str:
    return next((field for field in FIELDS if wanted & stems[field]), "")


def reason(parts: ScoreParts, cause: Inferred | Rule | None, domain: str) -> str:
    """`cause`: what decided about the item apart from its text, a person's rule or a capability."""
    if isinstance(cause, Rule):
        return cause.reason[0].upper() + cause.reason[1:]
    if parts.fuzzy >= EXACT_BUT_FOR_CASE:
        return "Exact name"
    if cause is not None:
        return f"Capability inference ({cause.kind} → {cause.capability})"
    return " + ".join(_evidence(parts)) + (f" ({domain})" if domain else "")


def _evidence(parts: ScoreParts) -> list[str]:
    evidence = []
    if parts.fuzzy:
        evidence.append("Fuzzy match of the name")
    if parts.semantic is not None and parts.semantic >= SEMANTIC_ENOUGH:
        evidence.append("Semantic similarity")
    if words := [_shown(match) for match in parts.matched[:MAX_WORDS]]:
        evidence.append(f"words {', '.join(words)}")
    if not evidence:
        return ["No word in common" if parts.semantic is None else "Nearest by meaning"]
    return [evidence[0][0].upper() + evidence[0][1:], *evidence[1:]]


def _shown(match: WordMatch) -> str:
    return f"{match.word} as {match.read_as}" if match.read_as else match.word
