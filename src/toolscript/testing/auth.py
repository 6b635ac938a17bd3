"""Callers and their request budget in memory."""

import time
from collections import Counter
from collections.abc import Callable, Mapping

from toolscript.core.auth.model import Anonymous, Budget, Plan, Principal, Tenant
from toolscript.core.errors import Unauthorized

WINDOW_SECONDS = 60


class MemoryTokenVerifier:
    """Knows these tokens and no other."""

    def __init__(self, known: Mapping[str, Principal]) -> None:
        self._known = known

    async def verify(self, token: str) -> Principal:
        if token not in self._known:
            raise Unauthorized("nobody knows this token", hint="use one that was given to MemoryCallers")
        return self._known[token]


class MemoryRequestBudget:
    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._minute = -1
        self._taken: Counter[Tenant | Anonymous] = Counter()

    async def take(self, who: Tenant | Anonymous, plan: Plan) -> Budget:
        limit = plan.requests_per_minute
        if limit is None:
            return Budget()
        minute, second = divmod(int(self._now()), WINDOW_SECONDS)
        if minute != self._minute:
            self._minute, self._taken = minute, Counter()
        allowed = self._taken[who] < limit
        self._taken[who] += allowed
        return Budget(limit, max(0, limit - self._taken[who]), WINDOW_SECONDS - second, allowed)
