"""In-memory principals and their request budgets."""

import time
from collections import Counter
from collections.abc import Callable, Mapping

from toolscript.core.auth.model import Anonymous, Budget, Plan, Principal, Tenant
from toolscript.core.errors import Unauthorized

WINDOW_SECONDS = 60


class MemoryTokenVerifier:
    """Accepts these tokens and no others."""

    def __init__(self, principals: Mapping[str, Principal]) -> None:
        self._principals = principals

    async def verify(self, token: str) -> Principal:
        if token not in self._principals:
            raise Unauthorized("the token is unknown", hint="use a token of this MemoryTokenVerifier")
        return self._principals[token]


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
