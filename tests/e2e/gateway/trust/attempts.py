"""Ways to have something started or sent that nobody asked for, each of a trap and a project's folder."""

from collections.abc import Callable
from pathlib import Path

from tests.e2e.gateway.trust.traps import Trap

Attempt = Callable[[Trap, Path], None]
ATTEMPTS: list[Attempt] = []
AS_ROOT: list[Attempt] = []


def attempt(tried: Attempt) -> Attempt:
    ATTEMPTS.append(tried)
    return tried


def attempt_as_root(tried: Attempt) -> Attempt:
    """Needs a file of another user, which only root can make."""
    AS_ROOT.append(tried)
    return tried
