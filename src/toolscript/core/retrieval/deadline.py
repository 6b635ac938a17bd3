"""Which failure leads to which answer. The only place that decides it; every row has a test.

| part      | what it may use of the time left | when it fails or is late                          |
|-----------|----------------------------------|---------------------------------------------------|
| embedding | half                             | the word arm answers alone, skills match by words |
| skills    | a quarter                        | the skills that are known; with none, all items   |
| index     | nine tenths                      | no results (its fields are part of it); `hybrid`: |
|           |                                  | what the other route found                        |
| schemas   | all of it                        | results without schemas                           |
| rerank    | half                             | the order as it was before                        |

The answer names the part in `degraded`, whatever the reason; the reason goes to the log. A fault of our own
(anything but Unavailable, Rejected, SetupError and a timeout) is not hidden: it ends the request.

Where nothing is found because a part failed, and more searches come than this service can do, the answer is not an
empty one but `Overloaded` (503): an agent would conclude that there is no such tool.
"""

import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from toolscript.errors import Overloaded, Rejected, SetupError, Unavailable
from toolscript.search.deadline import Deadline

T = TypeVar("T")

logger = logging.getLogger(__name__)


class Part(StrEnum):
    EMBEDDING = "embedding"
    SKILLS = "skills"
    INDEX = "index"
    SCHEMAS = "schemas"
    RERANK = "rerank"


RETRY_AFTER_SECONDS = 1

# Whether more searches came than this service can do, in the last so many seconds.
IsOverloaded = Callable[[float], bool]


def never_overloaded(_seconds: float) -> bool:
    return False


def overloaded() -> Overloaded:
    return Overloaded(
        "the service has more to do than it can at this moment",
        hint=f"try again in {RETRY_AFTER_SECONDS} second",
        details={"retry_after_seconds": RETRY_AFTER_SECONDS},
    )


SHARE_OF_TIME_LEFT = {Part.EMBEDDING: 0.5, Part.SKILLS: 0.25, Part.INDEX: 0.9, Part.SCHEMAS: 1.0, Part.RERANK: 0.5}


@dataclass
class Attempt:
    """Runs the parts of one request and remembers which of them failed."""

    deadline: Deadline
    failed: list[Part] = field(default_factory=list)
    is_overloaded: IsOverloaded = never_overloaded

    @property
    def parts_failed(self) -> tuple[str, ...]:
        """In the order of the table."""
        return tuple(part.value for part in Part if part in self.failed)

    async def or_else(self, part: Part, work: Coroutine[Any, Any, T], fallback: T) -> T:
        try:
            return await self.deadline.spend(SHARE_OF_TIME_LEFT[part], work)
        except (Unavailable, Rejected, SetupError, TimeoutError) as error:
            reason = str(error) or type(error).__name__
            logger.warning("search degraded", extra={"part": part.value, "reason": reason})
            if part not in self.failed:
                self.failed.append(part)
            return fallback

    def require_something(self, found: object) -> None:
        """At the end of a search: raises Overloaded where it found nothing and that is our own fault."""
        if found or not self.failed or not self.is_overloaded(self.deadline.seconds):
            return
        raise overloaded()
