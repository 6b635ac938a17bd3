"""The reason of a hit, in one line that a person can check."""

from toolscript.core.retrieval.request import Request
from toolscript.core.retrieval.terms import terms_of_word
from toolscript.gateway.capabilities import Inferred
from toolscript.gateway.index import EXACT_BUT_FOR_CASE, StemsByField
from toolscript.gateway.model import ScoreParts, WordMatch

SEMANTIC_ENOUGH = 0.3
MAX_WORDS = 4


def matched_words(stems: StemsByField, request: Request) -> tuple[WordMatch, ...]:
    """Return each matched query word, as typed, with the first field that contains it."""
    return tuple(
        WordMatch(word, field)
        for word in request.words
        if (field := _field_of(terms_of_word(request.corrections.get(word, word))[0], stems))
    )


def _field_of(stem: int, stems: StemsByField) -> str:
    order = ("name", "server", "description", "parameter", "parameter_text")
    return next((field for field in order if stem in stems[field]), "")


def reason(parts: ScoreParts, inferred: Inferred | None, request: Request, domain: str) -> str:
    if parts.fuzzy >= EXACT_BUT_FOR_CASE:
        return "Exact name"
    if inferred is not None:
        return f"Capability inference ({inferred.kind} → {inferred.capability})"
    return " + ".join(_evidence(parts, request)) + (f" ({domain})" if domain else "")


def _evidence(parts: ScoreParts, request: Request) -> list[str]:
    evidence = []
    if parts.fuzzy:
        evidence.append("Fuzzy match of the name")
    if parts.semantic is not None and parts.semantic >= SEMANTIC_ENOUGH:
        evidence.append("Semantic similarity")
    matched = [match.word for match in parts.matched]
    if words := [
        f"{word} as {request.corrections[word]}" if word in request.corrections else word for word in matched
    ][:MAX_WORDS]:
        evidence.append(f"words {', '.join(words)}")
    return [evidence[0][0].upper() + evidence[0][1:], *evidence[1:]] if evidence else ["Nearest by meaning"]
