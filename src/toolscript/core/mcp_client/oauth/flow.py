"""The authorization code flow: our client, the address that a person opens, its answer, and the tokens for it."""

import hmac
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from mcp.client.auth import PKCEParameters
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import ValidationError

from toolscript.core.errors import InvalidRequest, ServerRejected, SetupError
from toolscript.core.mcp_client.model import ServerSpec
from toolscript.core.mcp_client.oauth.discovery import S256, Discovered
from toolscript.core.mcp_client.oauth.exchanges import (
    BASIC,
    NONE,
    POST,
    UNREVOCABLE,
    Refused,
    place_of,
    post_credentials,
    post_json,
    shown,
    without_blanks,
)
from toolscript.core.mcp_client.oauth.grant import Grant, Registration

CLIENT_NAME = "Toolscript"
OFFLINE = "offline_access"
MAX_TOKEN = 32_000
MAX_SECONDS = 365 * 24 * 3600
# Of a request for authorization; an address in metadata may bring others.
_RESERVED = ("scope", "prompt", "request", "request_uri", "response_mode", "nonce", "max_age", "id_token_hint")
_GRANTS = ["authorization_code", "refresh_token"]
_HOW_BY_HAND = 'register a client by hand, and add it to the entry of the server: "oauth": {"clientId": "..."}'


@dataclass(frozen=True)
class Request:
    """One request for authorization. Its verifier and state never leave this process but where they belong."""

    url: str = field(repr=False)
    state: str = field(repr=False)
    verifier: str = field(repr=False)
    redirect_uri: str
    scope: str


async def client_for(
    spec: ServerSpec, found: Discovered, redirect_uri: str, known: Registration | None, scope: str
) -> Registration:
    """Return our client: the configured one, a metadata document, the one registered before, or a new one."""
    wanted, metadata = spec.oauth, found.metadata
    if wanted.client_id:
        methods = metadata.token_endpoint_auth_methods_supported or [BASIC]
        method = BASIC if BASIC in methods else POST
        return Registration(
            wanted.client_id, wanted.client_secret, method if wanted.client_secret else NONE, redirect_uri
        )
    if wanted.metadata_url and metadata.client_id_metadata_document_supported:
        return Registration(wanted.metadata_url, redirect_uri=redirect_uri)
    if known is not None and known.covers(redirect_uri, scope):
        return known
    if metadata.registration_endpoint is None:
        raise SetupError(f"{place_of(found.issuer)} does not let clients register themselves", hint=_HOW_BY_HAND)
    return await _register(str(metadata.registration_endpoint), redirect_uri, scope)


async def _register(endpoint: str, redirect_uri: str, scope: str) -> Registration:
    data = {
        "client_name": CLIENT_NAME,
        "redirect_uris": [redirect_uri],
        "grant_types": _GRANTS,
        "response_types": ["code"],
        "token_endpoint_auth_method": NONE,
        "application_type": "native",
        **({"scope": scope} if scope else {}),
    }
    answer = await post_json(endpoint, data)
    try:
        made = OAuthClientInformationFull.model_validate(answer)
    except ValidationError as error:
        raise ServerRejected(f"{place_of(endpoint)} answered a registration with something else") from error
    method = made.token_endpoint_auth_method or (BASIC if made.client_secret else NONE)
    if method not in (NONE, BASIC, POST) or (method != NONE and not made.client_secret):
        raise ServerRejected(f"{place_of(endpoint)} registered us with {shown(method)}, which is not supported")
    return Registration(made.client_id, made.client_secret or "", method, redirect_uri, made.scope or scope)


def scope_for(spec: ServerSpec, found: Discovered, wanted: tuple[str, ...] = ()) -> str:
    """Return the scopes to ask for: those of the person, of the entry, or what the server asks for."""
    scopes = [*(wanted or spec.oauth.scopes or found.scopes or ())]
    # Without it some servers give no token that can be renewed, and the person had to sign in every hour.
    if scopes and OFFLINE in (found.metadata.scopes_supported or ()) and OFFLINE not in scopes:
        scopes.append(OFFLINE)
    return " ".join(dict.fromkeys(scopes))


def authorization_request(found: Discovered, client: Registration, scope: str) -> Request:
    pkce, state = PKCEParameters.generate(), secrets.token_urlsafe(32)
    fields = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": client.redirect_uri,
        "state": state,
        "code_challenge": pkce.code_challenge,
        "code_challenge_method": S256,
        "resource": found.resource,
        **({"scope": scope} if scope else {}),
        **({"prompt": "consent"} if OFFLINE in scope.split() else {}),
    }
    parts = urlsplit(str(found.metadata.authorization_endpoint))
    # What the server puts there may not take the place of ours.
    theirs = [(name, value) for name, value in parse_qsl(parts.query) if name not in (*fields, *_RESERVED)]
    query = urlencode([*theirs, *fields.items()])
    url = urlunsplit(parts._replace(query=query, fragment=""))
    return Request(url, state, pkce.code_verifier, client.redirect_uri, scope)


def code_of(answer: Mapping[str, str], request: Request, found: Discovered) -> str:
    """Return the code of the answer to this request, and of no other (state, and issuer by RFC 9207)."""
    if not hmac.compare_digest(answer.get("state", "").encode(), request.state.encode()):
        raise ServerRejected("the answer belongs to another sign-in (its state differs); nothing was stored")
    issuer, announced = answer.get("iss"), found.metadata.authorization_response_iss_parameter_supported
    if (issuer is None and announced) or (issuer is not None and issuer != found.issuer):
        raise ServerRejected(
            f"the answer is not from {place_of(found.issuer)}, which was asked (its issuer differs, or is missing)"
        )
    if error := answer.get("error"):
        about = answer.get("error_description", "")
        raise ServerRejected(f"not signed in: {': '.join(filter(None, (shown(error), shown(about))))}")
    if not answer.get("code"):
        raise ServerRejected("the answer has no code")
    return answer["code"]


def pasted_answer(text: str, request: Request, found: Discovered) -> Mapping[str, str]:
    """Return the fields of what a person pasted: the address that the browser was sent to, or only its code."""
    text = text.strip()
    if "code=" in text or "error=" in text:
        return dict(parse_qsl(urlsplit(text).query or text.partition("?")[2] or text))
    if not text or any(letter.isspace() for letter in text) or "://" in text:
        raise InvalidRequest(
            "this is not the address that the browser was sent to",
            hint=f"copy all of it from the address bar: it begins with {request.redirect_uri}?",
        )
    if found.metadata.authorization_response_iss_parameter_supported:
        raise InvalidRequest(
            "the code alone does not say who issued it", hint="paste the whole address from the address bar"
        )
    # Only the verifier binds it to this sign-in, which the token endpoint checks.
    return {"code": text, "state": request.state}


async def exchange(
    spec: ServerSpec, found: Discovered, client: Registration, request: Request, code: str
) -> Grant:
    """Exchange the code for tokens, with the verifier that only this process has."""
    metadata = found.metadata
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": request.redirect_uri,
        "code_verifier": request.verifier,
        "resource": found.resource,
    }
    grant = Grant(
        spec.url,
        found.resource,
        found.issuer,
        str(metadata.token_endpoint),
        str(metadata.revocation_endpoint or ""),
        client,
        scope=request.scope,
        sign_in=secrets.token_hex(8),
    )
    return with_tokens(grant, await post_credentials(grant.token_endpoint, form, client))


async def refresh(grant: Grant) -> Grant:
    """Return the grant with new tokens. The server may give a new refresh token, which ends the old one."""
    form = {"grant_type": "refresh_token", "refresh_token": grant.refresh_token, "resource": grant.resource}
    return with_tokens(grant, await post_credentials(grant.token_endpoint, form, grant.client))


async def revoke(grant: Grant) -> bool:
    """Revoke both tokens; return whether the authorization server has a way to.

    It may have none for access tokens: they end by themselves, and with the other one no new one comes.
    """
    if not grant.revocation_endpoint:
        return False
    for token, kind in ((grant.refresh_token, "refresh_token"), (grant.access_token, "access_token")):
        if token:
            form = {"token": token, "token_type_hint": kind}
            try:
                await post_credentials(grant.revocation_endpoint, form, grant.client)
            except Refused as error:
                if error.error != UNREVOCABLE or not grant.refresh_token:
                    raise
    return True


def with_tokens(grant: Grant, answer: object) -> Grant:
    place = place_of(grant.token_endpoint)
    try:
        token = OAuthToken.model_validate(_tolerated(answer))
    except ValidationError:
        # Without its cause: the text of that has the values.
        raise ServerRejected(f"{place} answered without a bearer token") from None
    refresh_token = token.refresh_token or grant.refresh_token
    if not _is_sendable(token.access_token) or len(refresh_token) > MAX_TOKEN:
        raise ServerRejected(f"{place} gave a token that cannot be sent")
    seconds = float(min(max(token.expires_in, 0), MAX_SECONDS)) if token.expires_in is not None else 0.0
    return replace(
        grant,
        access_token=token.access_token,
        refresh_token=refresh_token,
        expires_at=time.time() + seconds if token.expires_in is not None else None,
        seconds=seconds,
        scope=token.scope or grant.scope,
    )


def _tolerated(answer: object) -> object:
    """Return a token response as the standard has it: a sign-in must not be lost for its form."""
    fields = without_blanks(answer)
    if not isinstance(fields, dict):
        return answer
    if isinstance(fields.get("scope"), list):
        fields["scope"] = " ".join(map(str, fields["scope"]))
    try:
        seconds = int(float(fields["expires_in"]))
    except (KeyError, TypeError, ValueError, OverflowError):
        seconds = None
    return {**fields, "expires_in": seconds}


def _is_sendable(token: str) -> bool:
    return bool(token) and len(token) <= MAX_TOKEN and token.isascii() and token.isprintable() and " " not in token
