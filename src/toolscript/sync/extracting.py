"""Has a language model say what chunks hold: several a call, few calls at once, no more tokens than it was given.

What it says is checked before anything is kept. A chunk without a usable answer is left for another run.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from toolscript.errors import Rejected, ToolscriptError
from toolscript.model.library import Chunk, Extraction, Source
from toolscript.ports import TextModel
from toolscript.sync.extraction_answers import extractions_in
from toolscript.sync.extraction_prompts import INSTRUCTIONS, PROMPT_VERSION, data_of, schema_for

CHUNKS_A_CALL = 4
# So many calls in a row without any answer: the endpoint is gone, and nobody waits for it any longer.
MOST_FAILURES = 3

logger = logging.getLogger(__name__)


class Extractor:
    """`problem` tells why it no longer asks; `left` counts the chunks that got no usable answer."""

    def __init__(
        self,
        text: TextModel,
        model: str,
        *,
        concurrency: int = 4,
        token_budget: int | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._text = text
        self._places = asyncio.Semaphore(concurrency)
        self._token_budget = token_budget
        self._spent_before = text.usage.tokens
        self._now = now
        self._failures = 0
        self.recipe = hashlib.blake2b(f"{PROMPT_VERSION}\0{model}".encode(), digest_size=6).hexdigest()
        self.problem = ""
        self.left = 0

    @property
    def tokens(self) -> int:
        return self._text.usage.tokens - self._spent_before

    async def extract(self, source: Source, chunks: Sequence[Chunk]) -> Mapping[str, Sequence[Extraction]]:
        """By chunk id; only chunks that were answered are there."""
        parts = [chunks[at : at + CHUNKS_A_CALL] for at in range(0, len(chunks), CHUNKS_A_CALL)]
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(self._ask(source, part)) for part in parts]
        found = {id_: extractions for one in asked for id_, extractions in one.result().items()}
        self.left += len(chunks) - len(found)
        return found

    async def _ask(self, source: Source, chunks: Sequence[Chunk]) -> Mapping[str, Sequence[Extraction]]:
        """An answer can be too long, or spoilt by one chunk: then each is asked about alone."""
        try:
            return await self._answered(source, chunks)
        except Rejected as error:
            if len(chunks) == 1:
                logger.warning("a chunk left without extractions", extra={"reason": error.message})
                return {}
        alone = [await self._ask(source, [chunk]) for chunk in chunks]
        return {id_: extractions for one in alone for id_, extractions in one.items()}

    async def _answered(self, source: Source, chunks: Sequence[Chunk]) -> Mapping[str, Sequence[Extraction]]:
        async with self._places:
            self._keep_to_budget()
            if self.problem:
                return {}
            try:
                reply = await self._text.reply(INSTRUCTIONS, data_of(source, chunks), schema_for(len(chunks)))
                found = extractions_in(reply, chunks, self._now().isoformat(timespec="seconds"))
            except Rejected:
                raise
            except ToolscriptError as error:
                self._failed(error)
                return {}
        self._failures = 0
        return found

    def _failed(self, error: ToolscriptError) -> None:
        self._failures += 1
        if self._failures >= MOST_FAILURES:
            self._give_up(error.message)

    def _keep_to_budget(self) -> None:
        if self._token_budget is not None and self.tokens >= self._token_budget:
            self._give_up(f"the budget of {self._token_budget:,} tokens is spent")

    def _give_up(self, reason: str) -> None:
        if not self.problem:
            self.problem = reason
            logger.warning("no more extractions in this run", extra={"reason": reason})
