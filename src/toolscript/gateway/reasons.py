"""Why a tool was found, in one line a person can check."""

from collections.abc import Mapping

from toolscript.core.retrieval.request import Request
from toolscript.core.retrieval.terms import terms_of_word
from toolscript.gateway.capabilities import Inferred
from toolscript.gateway.index import EXACT_BUT_FOR_CASE
from toolscript.gateway.model import ScoreParts, WordMatch

SEMANTIC_ENOUGH = 0.3
MAX_WORDS = 4


def matched_words(fields: Mapping[str, list[str]], asked: Request) -> tuple[WordMatch, ...]:
    """Each word of the query, as it was typed, with the first field it was found in."""
    stems = {field: frozenset(terms_of_word(word)[0] for word in words) for field, words in fields.items()}
    return tuple(
        WordMatch(word, field)
        for word in asked.words
        if (field := _field_of(terms_of_word(asked.meant.get(word, word))[0], stems))
    )


def _field_of(stem: int, stems: dict[str, frozenset[int]]) -> str:
    order = ("name", "server", "description", "parameter", "parameter_text")
    return next((field for field in order if stem in stems[field]), "")


def reason(parts: ScoreParts, inferred: Inferred | None, asked: Request, domain: str) -> str:
    if parts.fuzzy >= EXACT_BUT_FOR_CASE:
        return "Exact name"
    if inferred is not None:
        return f"Capability inference ({inferred.kind} → {inferred.capability})"
    return " + ".join(_evidence(parts, asked)) + (f" ({domain})" if domain else "")


def _evidence(parts: ScoreParts, request: Request) -> list[str]:
    found = []
    if parts.fuzzy:
        found.append("Fuzzy match of the name")
    if parts.semantic is not None and parts.semantic >= SEMANTIC_ENOUGH:
        found.append("Semantic similarity")
    said = [match.word for match in parts.matched]
    if words := [f"{word} as {request.meant[word]}" if word in request.meant else word for word in said][
        :MAX_WORDS
    ]:
        found.append(f"words {', '.join(words)}")
    return [found[0][0].upper() + found[0][1:], *found[1:]] if found else ["Nearest by meaning"]
