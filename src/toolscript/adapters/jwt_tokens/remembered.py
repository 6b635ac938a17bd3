"""Tokens that were verified a moment ago, by their hash: the tokens themselves are kept nowhere."""

from collections import OrderedDict

from toolscript.model.tenancy import Caller

MOST_TOKENS = 10_000
# A key that is taken away matters this much later at the most.
LONGEST_SECONDS = 60.0


class RememberedTokens:
    def __init__(self, most: int = MOST_TOKENS) -> None:
        self._most = most
        self._callers: OrderedDict[bytes, tuple[Caller, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._callers)

    def recall(self, digest: bytes, now: float) -> Caller | None:
        found = self._callers.get(digest)
        if found is None:
            return None
        caller, until = found
        # A clock that was set back must not make it last longer.
        if not until - LONGEST_SECONDS <= now < until:
            del self._callers[digest]
            return None
        self._callers.move_to_end(digest)
        return caller

    def remember(self, digest: bytes, caller: Caller, now: float, expires: float) -> None:
        self._callers[digest] = caller, min(expires, now + LONGEST_SECONDS)
        if len(self._callers) > self._most:
            self._callers.popitem(last=False)
