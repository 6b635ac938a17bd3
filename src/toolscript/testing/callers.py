"""Callers by their tokens, in memory."""

from collections.abc import Mapping

from toolscript.errors import Unauthorized
from toolscript.model.tenancy import Caller


class MemoryCallers:
    """Knows these tokens and no other."""

    def __init__(self, known: Mapping[str, Caller]) -> None:
        self._known = known

    async def verify(self, token: str) -> Caller:
        if token not in self._known:
            raise Unauthorized("nobody knows this token", hint="use one that was given to MemoryCallers")
        return self._known[token]
