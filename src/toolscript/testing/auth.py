"""In-memory principals and their request budgets."""

import time
from collections import Counter
from collections.abc import Callable

from toolscript.core.auth.model import Anonymous, Budget, Plan, Tenant

WINDOW_SECONDS = 60


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
