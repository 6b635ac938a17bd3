"""Why a token was refused, in one word: what a person is told has too many forms to be counted."""

from toolscript.adapters.telemetry.words import OTHER
from toolscript.errors import Unauthorized

# First match wins.
_WORDS = (
    ("expired", "expired"),
    ("not valid yet", "too_early"),
    ("in the future", "too_early"),
    ("issued by", "issuer"),
    ("issued for", "audience"),
    ("signature", "signature"),
    ("signed in a way", "algorithm"),
    ("key", "key"),
    ("`kid`", "key"),
    ("tenant", "tenant"),
    ("lacks", "claims"),
    ("cannot be understood", "claims"),
    ("at most", "shape"),
    ("no token", "shape"),
    ("parts", "shape"),
    ("`crit`", "shape"),
    ("another kind", "shape"),
    ("payload", "shape"),
)
REASONS = tuple(sorted({word for _, word in _WORDS} | {OTHER}))


def reason_of(error: Unauthorized) -> str:
    return next((word for said, word in _WORDS if said in error.message), OTHER)
