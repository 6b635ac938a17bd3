"""How long to wait for a server, and what happened to its connection between two requests."""

import asyncio
import random
from dataclasses import dataclass


class Signals:
    """One waits for `stirred`, then looks at what there is to do."""

    def __init__(self) -> None:
        self.stirred = asyncio.Event()
        self.lost = False
        self.changed = False
        self.doubted = False

    def lose(self) -> None:
        self.lost = True
        self.stirred.set()

    def change(self) -> None:
        """What the server offers is no longer what was listed."""
        self.changed = True
        self.stirred.set()

    def doubt(self) -> None:
        """Something ended that should not have: the server may be gone, or not."""
        self.doubted = True
        self.stirred.set()

    def forget(self) -> None:
        """For another try with the same server: what the last one met no longer counts."""
        self.lost = self.changed = self.doubted = False

    def take_changed(self) -> bool:
        taken, self.changed = self.changed, False
        return taken

    def take_doubted(self) -> bool:
        taken, self.doubted = self.doubted, False
        return taken


@dataclass(frozen=True)
class Pace:
    """In seconds. The defaults suit people; tests use shorter ones."""

    first_retry: float = 0.5
    max_retry: float = 60.0
    settled_after: float = 30.0
    gather_changes: float = 0.1
    look_after: float = 30.0
    answer_look: float = 10.0
    goodbye: float = 1.0
    close: float = 5.0
    # A server of the older protocol may never answer a request it does not know. To shake hands while a slow
    # server of the newer one is still starting does no harm: it then says so, and is asked again.
    probe: float = 5.0

    def retry_after(self, failures: int) -> float:
        """Doubles with every failure in a row; spread out, so that servers that fell together rise apart."""
        longest = min(self.max_retry, self.first_retry * 2.0 ** min(failures - 1, 30))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - no secret hangs on it
