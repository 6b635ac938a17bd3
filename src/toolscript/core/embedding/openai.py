"""Embeddings from any endpoint that speaks OpenAI's embeddings protocol."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import openai
from openai import AsyncOpenAI
from openai.types import CreateEmbeddingResponse

from toolscript.core.errors import EmbedderRejected, EmbedderUnavailable, SetupError, ToolscriptError
from toolscript.core.retrieval.model import Matrix, ModelCard, Vector, checked_vectors

BATCH = 128

_KEY = "is TOOLSCRIPT_EMBEDDING_API_KEY right?"
_URL = "is TOOLSCRIPT_EMBEDDING_URL right, and the endpoint running?"

# First match wins.
TRANSLATIONS: tuple[tuple[type[Exception], type[ToolscriptError], str], ...] = (
    (openai.APIConnectionError, EmbedderUnavailable, _URL),
    (openai.RateLimitError, EmbedderUnavailable, "the endpoint limits the rate: try again later"),
    (openai.InternalServerError, EmbedderUnavailable, "the endpoint failed: try again later"),
    (openai.AuthenticationError, SetupError, _KEY),
    (openai.PermissionDeniedError, SetupError, _KEY),
    (openai.NotFoundError, SetupError, "does the endpoint have this model? See TOOLSCRIPT_EMBEDDING_MODEL"),
    (openai.OpenAIError, EmbedderRejected, ""),
    # The client raises its JSON parser's own error.
    (ValueError, EmbedderRejected, _URL),
)


class OpenAIEmbedder:
    """Embeds through an endpoint. `headers` is called for every request: it returns the trace context."""

    def __init__(
        self,
        base_url: str,
        card: ModelCard,
        *,
        api_key: str = "",
        timeout_seconds: float = 30.0,
        retries: int = 2,
        headers: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._card = card
        self._headers = headers
        self._client = AsyncOpenAI(
            base_url=base_url, api_key=api_key or "none", timeout=timeout_seconds, max_retries=retries
        )

    @property
    def model(self) -> ModelCard:
        return self._card

    async def embed_query(self, text: str) -> Vector:
        vectors = await self._embed([self._card.query_prefix + text])
        return np.asarray(vectors[0])

    async def embed_texts(self, texts: Sequence[str]) -> Matrix:
        prefixed = [self._card.passage_prefix + text for text in texts]
        batches = [prefixed[start : start + BATCH] for start in range(0, len(prefixed), BATCH)]
        vectors = [await self._embed(batch) for batch in batches]
        return np.concatenate(vectors) if vectors else np.empty((0, self._card.dimensions), np.float32)

    async def close(self) -> None:
        await self._client.close()

    async def _embed(self, texts: list[str]) -> Matrix:
        with translated():
            response = await self._client.embeddings.create(
                model=self._card.name,
                input=[_encodable(text) for text in texts],
                encoding_format="float",
                extra_headers=self._headers(),
            )
        return checked_vectors(_matrix(response), len(texts), self._card)


def _encodable(text: str) -> str:
    # A lone surrogate is legal in a JSON request, but has no UTF-8 encoding.
    return text.encode("utf-8", "replace").decode()


def _matrix(response: CreateEmbeddingResponse) -> Matrix:
    """Validate the response, which the client does not, and sort the vectors: they may come in any order."""
    try:
        rows = [entry.embedding for entry in sorted(response.data or [], key=lambda entry: entry.index)]
        return np.array(rows, dtype=np.float32)
    except (AttributeError, TypeError, ValueError) as error:
        raise EmbedderRejected(f"the endpoint did not return a list of vectors: {error}") from error


@contextmanager
def translated() -> Iterator[None]:
    try:
        yield
    except (openai.OpenAIError, ValueError) as error:
        for cause, error_class, hint in TRANSLATIONS:
            if isinstance(error, cause):
                raise error_class(f"embedding endpoint: {error}", hint=hint) from error
        raise
