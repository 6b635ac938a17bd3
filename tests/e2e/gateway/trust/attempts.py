"""Attempts to start a program or send a secret without consent, each with a trap and a project folder."""

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
    """Register an attempt that needs a file of another user, which only root can create."""
    AS_ROOT.append(tried)
    return tried
