"""`toolscript` that kills itself at a step: `python -m` this, with the step, the time it counts, and a command."""

import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from toolscript.__main__ import main
from toolscript.documents.postgres import PostgresDocumentVersions
from toolscript.documents.reindex import DocumentCopy
from toolscript.server import reindex_documents

BEFORE, AFTER = False, True
# Name of a step, the function called there, and whether the process dies after it.
STEPS: dict[str, tuple[Any, str, bool]] = {
    "the new index is made": (PostgresDocumentVersions, "begin", BEFORE),
    "both are recorded": (PostgresDocumentVersions, "begin", AFTER),
    "a batch is stored": (PostgresDocumentVersions, "advance", BEFORE),
    "a batch is recorded": (PostgresDocumentVersions, "advance", AFTER),
    "changes are brought over": (PostgresDocumentVersions, "clear", BEFORE),
    "changes are cleared": (PostgresDocumentVersions, "clear", AFTER),
    "a tenant is compared": (DocumentCopy, "reconcile", AFTER),
    "a document is verified": (DocumentCopy, "differs", AFTER),
    "all is verified": (PostgresDocumentVersions, "switch", BEFORE),
    "the switch is recorded": (PostgresDocumentVersions, "switch", AFTER),
    "the alias is moved": (reindex_documents, "make_documents_live", AFTER),
    "late writers are waited for": (PostgresDocumentVersions, "pending", AFTER),
}

# Steps that occur several times in every run.
AGAIN = ("a batch is stored", "a batch is recorded", "a tenant is compared", "a document is verified")


def doom(step: str, times: int) -> None:
    home, name, is_done = STEPS[step]
    really: Callable[..., Awaitable[Any]] = getattr(home, name)
    seen = 0

    async def dying(*given: Any, **named: Any) -> Any:
        nonlocal seen
        seen += 1
        answer = await really(*given, **named) if is_done or seen < times else None
        if seen == times:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    setattr(home, name, dying)


if __name__ == "__main__":
    _, step, times, *arguments = sys.argv
    doom(step, int(times))
    sys.argv = ["toolscript", *arguments]
    main()
