"""Keys and tokens of one's own, for trying things out and for whoever has no issuer."""

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import JWKRegistry, Key, OKPKey

from toolscript.core.auth.keys import SIGNATURES, fitting
from toolscript.core.auth.model import Tenant
from toolscript.core.auth.tokens import TokenRules
from toolscript.core.errors import Conflict, InvalidRequest, NotFound

PRIVATE_NAME, PUBLIC_NAME = "signing-key.json", "jwks.json"
MAX_HOURS = 24 * 366.0
_KEY_HINT = "`toolscript tenants keys DIR` makes one"


@dataclass(frozen=True)
class KeyFiles:
    """`private` signs, and is for nobody else to see; `public` is what TOOLSCRIPT_JWT_KEYS names."""

    private: Path
    public: Path
    kid: str


def make_keys(folder: Path) -> KeyFiles:
    """A new pair of keys. Never replaces one that is there: tokens may have been signed with it."""
    key = OKPKey.generate_key("Ed25519", auto_kid=True)
    files = KeyFiles(folder / PRIVATE_NAME, folder / PUBLIC_NAME, str(key.kid))
    facts = {"alg": "EdDSA", "use": "sig"}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_new(files.private, {**key.as_dict(private=True), **facts}, 0o600)
        try:
            _write_new(files.public, {"keys": [{**key.as_dict(private=False), **facts}]}, 0o644)
        except BaseException:
            files.private.unlink()
            raise
    except FileExistsError as error:
        raise Conflict(f"{error.filename} is there already", hint="choose another folder") from None
    except OSError as error:
        raise InvalidRequest(f"cannot write to {folder}: {error.strerror}", hint="choose another folder") from None
    return files


def _write_new(path: Path, content: object, mode: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=2)
        file.write("\n")


def sign_token(
    key_file: Path,
    rules: TokenRules,
    tenant: Tenant,
    *,
    plan: str = "",
    subject: str = "",
    scopes: Sequence[str] = (),
    hours: float = 1.0,
    now: Callable[[], float] = time.time,
) -> str:
    """A token that whoever follows the same rules and knows the public key takes for this tenant's.

    Without `scopes` it says nothing of them, and allows all that the tenant may do.
    """
    if not 0 < hours <= MAX_HOURS:
        raise InvalidRequest("a token holds for more than 0 hours, and for a year at the most")
    if not rules.issuer:
        raise InvalidRequest("a token needs an issuer", hint="the same as TOOLSCRIPT_JWT_ISSUER")
    key, kid = _signing_key(key_file)
    at = int(now())
    claims: dict[str, Any] = {"iss": rules.issuer, "aud": rules.audience, "iat": at, "exp": at + int(hours * 3600)}
    claims |= {rules.tenant_claim: tenant.name}
    claims |= ({rules.plan_claim: plan} if plan else {}) | ({"sub": subject} if subject else {})
    claims |= {"scope": " ".join(scopes)} if scopes else {}
    header = {"alg": _algorithm(key, key_file), **({"kid": kid} if kid else {})}
    return jwt.encode(header, claims, key, registry=SIGNATURES)


def _signing_key(path: Path) -> tuple[Key, str]:
    try:
        found = json.loads(path.read_text("utf-8"))
        kid = str(found.get("kid", ""))
        # What it says of its use is for those who verify.
        key = JWKRegistry.import_key(
            {name: found[name] for name in found if name not in ("alg", "use", "key_ops")}
        )
    except OSError as error:
        raise NotFound(f"cannot read {path}: {error.strerror}", hint=_KEY_HINT) from None
    except (ValueError, TypeError, AttributeError, KeyError, JoseError):
        # Not why: the reason could quote the key.
        raise InvalidRequest(f"{path} holds no private key in JSON (a JWK)", hint=_KEY_HINT) from None
    if not key.is_private or key.key_type == "oct":
        raise InvalidRequest(f"{path} holds no private key to sign with", hint=_KEY_HINT)
    return key, kid


def _algorithm(key: Key, path: Path) -> str:
    for name in ("EdDSA", "ES256", "RS256"):
        if name in fitting(key.key_type, getattr(key, "curve_name", ""), None):
            return name
    raise InvalidRequest(f"{path} holds a key of a kind that is not accepted", hint=_KEY_HINT)
