"""JSON Web Tokens: whose they are, and for trying things out, how to make them."""

from toolscript.adapters.jwt_tokens.callers import JwtCallers
from toolscript.adapters.jwt_tokens.claims import TokenRules
from toolscript.adapters.jwt_tokens.key_ring import KeyRing
from toolscript.adapters.jwt_tokens.key_sources import KeyAddress, KeyFile, KeySource, key_source
from toolscript.adapters.jwt_tokens.signing import KeyFiles, make_keys, sign_token

__all__ = [
    "JwtCallers",
    "KeyAddress",
    "KeyFile",
    "KeyFiles",
    "KeyRing",
    "KeySource",
    "TokenRules",
    "key_source",
    "make_keys",
    "sign_token",
]
