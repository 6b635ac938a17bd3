"""How long the stages of one request took."""

import time
from collections import defaultdict


class Stages:
    """Milliseconds by stage; a stage that came twice took both times."""

    def __init__(self) -> None:
        self._began = self._ended = time.perf_counter()
        self.spent: defaultdict[str, float] = defaultdict(float)

    def end(self, stage: str) -> None:
        """What was done since the last stage ended was this one."""
        before, self._ended = self._ended, time.perf_counter()
        self.spent[stage] += (self._ended - before) * 1000

    def total(self) -> float:
        return (time.perf_counter() - self._began) * 1000
