"""Local keys and tokens, for trials and for installations without a token issuer."""

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

from toolscript.core.auth.keys import SIGNATURES, algorithms_for
from toolscript.core.auth.model import Tenant
from toolscript.core.auth.tokens import TokenRules
from toolscript.core.errors import Conflict, InvalidRequest, NotFound
from toolscript.core.namespaces import valid_namespace

PRIVATE_NAME, PUBLIC_NAME = "signing-key.json", "jwks.json"
MAX_HOURS = 24 * 366.0
_KEY_HINT = "`toolscript tenants keys DIR` makes one"


@dataclass(frozen=True)
class KeyFiles:
    """`private` signs tokens and stays secret; `public` is the file for TOOLSCRIPT_JWT_KEYS."""

    private: Path
    public: Path
    kid: str


def make_keys(folder: Path) -> KeyFiles:
    """Create a key pair. Existing keys are never replaced: tokens may have been signed with them."""
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
        raise Conflict(f"{error.filename} exists already", hint="choose another folder") from None
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
    namespaces: Sequence[str] = (),
    hours: float = 1.0,
    now: Callable[[], float] = time.time,
) -> str:
    """Return a token of this tenant, valid for services with the same rules and the public key.

    Without `scopes` the token has no scope claim and allows all that the tenant may do; without `namespaces` it
    sees the default namespace of the catalog.
    """
    if not 0 < hours <= MAX_HOURS:
        raise InvalidRequest("a token is valid for more than 0 hours and at most a year")
    if not rules.issuer:
        raise InvalidRequest(
            "a token needs an issuer",
            hint="give it with --issuer, the same as TOOLSCRIPT_JWT_ISSUER of the service",
        )
    key, kid = _signing_key(key_file)
    issued_at = int(now())
    claims: dict[str, Any] = {
        "iss": rules.issuer,
        "aud": rules.audience,
        "iat": issued_at,
        "exp": issued_at + int(hours * 3600),
    }
    claims |= {rules.tenant_claim: tenant.name}
    claims |= ({rules.plan_claim: plan} if plan else {}) | ({"sub": subject} if subject else {})
    claims |= {"scope": " ".join(scopes)} if scopes else {}
    claims |= {rules.namespaces_claim: list(map(valid_namespace, namespaces))} if namespaces else {}
    header = {"alg": _algorithm(key, key_file), **({"kid": kid} if kid else {})}
    return jwt.encode(header, claims, key, registry=SIGNATURES)


def _signing_key(path: Path) -> tuple[Key, str]:
    try:
        document = json.loads(path.read_text("utf-8"))
        kid = str(document.get("kid", ""))
        # The declared use applies to verification only.
        key = JWKRegistry.import_key(
            {name: document[name] for name in document if name not in ("alg", "use", "key_ops")}
        )
    except OSError as error:
        raise NotFound(f"cannot read {path}: {error.strerror}", hint=_KEY_HINT) from None
    except (ValueError, TypeError, AttributeError, KeyError, JoseError):
        # Without the cause: it could quote the key.
        raise InvalidRequest(f"{path} is not a private key in JSON (a JWK)", hint=_KEY_HINT) from None
    if not key.is_private or key.key_type == "oct":
        raise InvalidRequest(f"{path} is not a private key for signatures", hint=_KEY_HINT)
    return key, kid


def _algorithm(key: Key, path: Path) -> str:
    for name in ("EdDSA", "ES256", "RS256"):
        if name in algorithms_for(key.key_type, getattr(key, "curve_name", ""), None):
            return name
    raise InvalidRequest(f"{path} is a key of a type that is not accepted", hint=_KEY_HINT)
