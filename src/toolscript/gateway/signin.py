"""Sign-in of a person to a remote server of the config files, and the end of it."""

import asyncio
import sys
import time
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from urllib.parse import urlsplit

from toolscript.core.errors import InvalidRequest, NotFound, ToolscriptError, Unavailable
from toolscript.core.mcp_client.model import ServerSpec, ServerState, without_server_output
from toolscript.core.mcp_client.oauth.callback import Callback, listening
from toolscript.core.mcp_client.oauth.discovery import (
    Discovered,
    ask_for_challenge,
    discover,
    needs_sign_in,
    require_issuer,
)
from toolscript.core.mcp_client.oauth.exchanges import is_unknown_client
from toolscript.core.mcp_client.oauth.flow import (
    Request,
    authorization_request,
    client_for,
    code_of,
    exchange,
    pasted_answer,
    revoke,
    scope_for,
)
from toolscript.core.mcp_client.oauth.grant import Grant
from toolscript.core.mcp_client.oauth.tokens import Credentials
from toolscript.core.retrieval.deadline import run_on_daemon_thread
from toolscript.gateway.config.read import left_out, read_config
from toolscript.gateway.discovery import place_of, with_secrets
from toolscript.gateway.joining import find_running
from toolscript.gateway.runtime import sign_ins_of
from toolscript.gateway.settings import GatewaySettings, environment, load_gateway_settings

PERSON_SECONDS = 300.0
CONNECTS_SECONDS, LOOK_SECONDS = 10.0, 0.2
PROBE_SECONDS = 5.0


@dataclass(frozen=True)
class Dialog:
    """How a person takes part: they are shown an address, in a browser or as text whose answer they paste."""

    show: Callable[[str, str], None]
    read_line: Callable[[], str]
    complain: Callable[[str], None]
    browser: bool = True
    note: Callable[[str], None] = lambda _text: None


@dataclass(frozen=True)
class SignedIn:
    """`issuer` is the host of the authorization server; `state` that of the server in the running gateway."""

    server: str
    issuer: str
    scope: str
    place: str
    state: ServerState | None = None


@dataclass(frozen=True)
class SignedOut:
    """`revoked`: the authorization server has ended the tokens; else `why_not`."""

    server: str
    revoked: bool
    why_not: str = ""


def sign_in(server: str, dialog: Dialog, *, flags: Mapping[str, object], scopes: Sequence[str] = ()) -> SignedIn:
    settings = load_gateway_settings(flags)
    spec = _remote(settings, server)
    credentials, place = _credentials(settings, spec)
    grant = asyncio.run(sign_in_to(spec, credentials, dialog, tuple(scopes)))
    state = _until_connected(settings, server)
    return SignedIn(server, urlsplit(grant.issuer).netloc, grant.scope, place, state)


def sign_out(server: str, *, flags: Mapping[str, object]) -> SignedOut | None:
    """Revoke the tokens where the authorization server can, and forget them; None if there was no sign-in.

    The entry may be gone, or lead elsewhere by now: what is stored is enough.
    """
    settings = load_gateway_settings(flags)
    left = sign_ins_of(settings).left_of(server)
    if not left:
        # It says why, where nobody can be signed in to it.
        _credentials(settings, _remote(settings, server))
    return asyncio.run(_sign_out_of_all(server, left))


async def _sign_out_of_all(server: str, left: Sequence[Credentials]) -> SignedOut | None:
    outs = [out for credentials in left if (out := await sign_out_of(server, credentials)) is not None]
    kept = [out for out in outs if not out.revoked]
    return (kept or outs)[0] if outs else None


def has_browser() -> bool:
    """Return whether this process can show a page to the person: not over SSH, nor without a display."""
    variables = environment()
    if variables.get("BROWSER"):
        return True
    if variables.get("SSH_CONNECTION") or variables.get("SSH_TTY"):
        return False
    has_display = variables.get("DISPLAY") or variables.get("WAYLAND_DISPLAY")
    return bool(has_display) or sys.platform in ("darwin", "win32")


def find_signed_out(file: Path, servers: Sequence[str]) -> list[str]:
    """Return those of these servers of a file that want a sign-in; one that is slow to answer is left out."""
    specs = read_config([file], environment()).servers
    return asyncio.run(_signed_out([spec for spec in specs if spec.name in servers and spec.may_sign_in]))


async def _signed_out(specs: Sequence[ServerSpec]) -> list[str]:
    async def asks(spec: ServerSpec) -> bool:
        with suppress(ToolscriptError, TimeoutError):
            async with asyncio.timeout(PROBE_SECONDS):
                return await needs_sign_in(spec, await ask_for_challenge(spec))
        return False

    wanting = await asyncio.gather(*map(asks, specs))
    return [spec.name for spec, wants in zip(specs, wanting, strict=True) if wants]


def _credentials(settings: GatewaySettings, spec: ServerSpec) -> tuple[Credentials, str]:
    sign_ins = sign_ins_of(settings)
    credentials = sign_ins.of(spec)
    if credentials is None:
        raise InvalidRequest(
            f"the entry of {spec.name} has credentials of its own",
            hint="take Authorization out of its headers, or the password out of its url, to sign in",
        )
    return credentials, str(getattr(sign_ins.store, "place", ""))


def _remote(settings: GatewaySettings, server: str) -> ServerSpec:
    config = with_secrets(place_of(settings), settings.data_folder).read(environment())
    specs = {spec.name: spec for spec in config.servers}
    spec = specs.get(server)
    if spec is None:
        for state in left_out(config):
            if state.name == server:
                raise InvalidRequest(f"{server}: {without_server_output(state.error)}")
        near = get_close_matches(server, specs, n=3) or [name for name in specs if specs[name].may_sign_in]
        hint = f"there is {', '.join(near)}" if near else "`toolscript list-servers` lists them"
        raise NotFound(f"there is no server {server[:100]!r} in the config files", hint=hint)
    if not spec.url:
        raise InvalidRequest(
            f"{server} is started by a command: it signs in by itself, if it has to",
            hint="only a server with a `url` is signed in to here",
        )
    return spec


async def sign_in_to(spec: ServerSpec, credentials: Credentials, dialog: Dialog, scopes: tuple[str, ...]) -> Grant:
    found = await _found(spec)
    known = await credentials.load()
    require_issuer(spec, found, known.issuer if known is not None else "")
    same = known.client if known is not None and known.issuer == found.issuer else None
    preferred = urlsplit(same.redirect_uri).port or 0 if same is not None else 0
    granted = known.scope.split() if known is not None and same is not None and known.access_token else []
    scope = scope_for(spec, found, (*granted, *scopes) if scopes else ())
    async with listening(spec.oauth.callback_port, preferred) as callback:
        client = await client_for(spec, found, callback.redirect_uri, same, scope)
        request = authorization_request(found, client, scope)
        callback.state = request.state
        try:
            code = await _code(spec.name, request, found, callback, dialog)
            grant = await exchange(spec, found, client, request, code)
            await credentials.save(grant)
        except ToolscriptError as error:
            await callback.finish("Not signed in", f"{error.message}.")
            if known is not None and client is same and is_unknown_client(error):
                await credentials.save(known.without_tokens(knows_client=False))
            raise
        await callback.finish(f"Signed in to {spec.name}", "You can close this window.")
    return grant


async def _found(spec: ServerSpec) -> Discovered:
    challenge = await ask_for_challenge(spec)
    try:
        return await discover(spec, challenge)
    except ToolscriptError as error:
        if challenge is None:
            raise InvalidRequest(
                f"{spec.name} does not ask for a sign-in", hint="`toolscript list-servers` shows its state"
            ) from error
        raise


async def _code(server: str, request: Request, found: Discovered, callback: Callback, dialog: Dialog) -> str:
    """Return the code that the person's browser brings, or that they paste."""
    answered: set[asyncio.Future[str]] = {asyncio.ensure_future(_brought(request, found, callback))}
    if recipient := found.recipient:
        dialog.note(f"the code goes to {recipient}, which is not the host of the page")
    dialog.show(request.url, request.redirect_uri)
    if dialog.browser:
        opening = asyncio.ensure_future(run_on_daemon_thread(lambda: webbrowser.open(request.url)))
        opening.add_done_callback(lambda done: done.cancelled() or done.exception())
    else:
        answered.add(asyncio.ensure_future(_pasted(request, found, dialog)))
    try:
        done, _ = await asyncio.wait(answered, timeout=PERSON_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for future in answered:
            future.cancel()
    if not done:
        minutes = PERSON_SECONDS / 60
        raise Unavailable(
            f"nobody signed in within {minutes:g} minutes",
            hint=f"run `toolscript login {server}` again; if the page refused our client, "
            f"`toolscript logout {server}` first",
        )
    return done.pop().result()


async def _brought(request: Request, found: Discovered, callback: Callback) -> str:
    return code_of(await callback.answer, request, found)


async def _pasted(request: Request, found: Discovered, dialog: Dialog) -> str:
    while line := await run_on_daemon_thread(dialog.read_line):
        try:
            return code_of(pasted_answer(line, request, found), request, found)
        except InvalidRequest as error:
            dialog.complain(f"{error.message}; {error.hint}")
    # Nothing more can be pasted. A browser on this machine may still bring the answer.
    await asyncio.Event().wait()
    return ""


async def sign_out_of(server: str, credentials: Credentials) -> SignedOut | None:
    grant = await credentials.load()
    if grant is None:
        return None
    try:
        revoked = await revoke(grant)
        why_not = "" if revoked else "the authorization server has no way to"
    except ToolscriptError as error:
        revoked, why_not = False, error.message
    await credentials.forget()
    return SignedOut(server, revoked, why_not)


def _until_connected(settings: GatewaySettings, server: str) -> ServerState | None:
    """Return the state of the server in the running gateway once it has used the new tokens."""
    running = find_running(settings)
    if running is None:
        return None
    ends_at, state = time.monotonic() + CONNECTS_SECONDS, None
    with suppress(ToolscriptError):
        while time.monotonic() < ends_at:
            states = {state.name: state for state in asyncio.run(running.servers())}
            state = states.get(server)
            if state is None or state.answers:
                break
            time.sleep(LOOK_SECONDS)
    return state
