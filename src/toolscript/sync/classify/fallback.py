"""One classifier when the other cannot, and a while of peace for one that failed."""

import logging
import time
from collections.abc import Callable, Sequence

from toolscript.errors import ToolscriptError
from toolscript.model.skills import Classification, Skill, Unclassified
from toolscript.ports.skills import Classifier

FIRST_PAUSE, LONGEST_PAUSE = 30.0, 600.0

logger = logging.getLogger(__name__)


class FallbackClassifier:
    """What `first` refuses, or has nothing to say about, `second` answers.

    After a failure `first` is left alone for a while; then one call tries it again, and the others wait for none.
    """

    def __init__(self, first: Classifier, second: Classifier, now: Callable[[], float] = time.monotonic) -> None:
        self._first = first
        self._second = second
        self._now = now
        self._pause = 0.0
        self._resumes_at = 0.0
        self._is_trying = False

    async def classify(self, items: Sequence[Unclassified], skills: Sequence[Skill]) -> Sequence[Classification]:
        answers = list(await self._ask_first(items, skills))
        unanswered = [at for at, answer in enumerate(answers) if _says_nothing(answer)]
        if unanswered:
            given = await self._second.classify([items[at] for at in unanswered], skills)
            for at, answer in zip(unanswered, given, strict=True):
                answers[at] = answer
        return answers

    async def _ask_first(self, items: Sequence[Unclassified], skills: Sequence[Skill]) -> Sequence[Classification]:
        nothing = [Classification()] * len(items)
        was_failing = self._pause > 0
        if not items or (was_failing and (self._is_trying or self._now() < self._resumes_at)):
            return nothing
        self._is_trying = was_failing
        try:
            answers = await self._first.classify(items, skills)
        except ToolscriptError as error:
            self._leave_alone(error)
            return nothing
        finally:
            self._is_trying = False
        self._pause = 0.0
        return answers

    def _leave_alone(self, error: ToolscriptError) -> None:
        """Calls that were under way together fail together: that is one failure."""
        if self._pause and self._now() < self._resumes_at:
            return
        self._pause = min(self._pause * 2, LONGEST_PAUSE) if self._pause else FIRST_PAUSE
        self._resumes_at = self._now() + self._pause
        logger.warning(
            "rules classify for the next %d seconds: %s", self._pause, error.message, extra={"part": "classifier"}
        )


def _says_nothing(answer: Classification) -> bool:
    return not answer.assignments and answer.suggestion is None
