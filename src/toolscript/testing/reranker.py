"""A reranker without a model: how much of the query a passage says."""

from collections.abc import Sequence

from toolscript.model.words import terms_of_word, without_stop_words, words_of


class WordReranker:
    """Counts what it was asked for."""

    def __init__(self, name: str = "words") -> None:
        self._name = name
        self.passages_read = 0

    @property
    def name(self) -> str:
        return self._name

    async def scores(self, query: str, passages: Sequence[str]) -> Sequence[float]:
        self.passages_read += len(passages)
        asked = _stems(query)
        return [len(asked & _stems(passage)) / max(len(asked), 1) for passage in passages]


def _stems(text: str) -> frozenset[int]:
    return frozenset(terms_of_word(word)[0] for word in without_stop_words(words_of(text)))
