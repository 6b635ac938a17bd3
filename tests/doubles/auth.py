"""Tokens that a test knows."""

from collections.abc import Mapping

from toolscript.core.auth.model import Principal
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
