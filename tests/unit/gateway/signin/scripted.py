"""A server that is its own authorization server, with scripted metadata and answers, and a thief beside it."""

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.support.authorization_server_running import visit
from tests.unit.gateway.mcp.serving import serve
from tests.unit.gateway.signin.people import NAME, SignedIn, ignored
from toolscript.core.mcp_client.model import OAuthClient, ServerSpec, Transport
from toolscript.core.mcp_client.oauth.grant import Grant, Registration
from toolscript.gateway.signin import Dialog

CODE, TOKEN, REFRESH = "a-code-of-the-script", "an-access-token-of-the-script", "a-refresh-token-of-the-script"
RESOURCE = "/.well-known/oauth-protected-resource/mcp"
SERVER = "/.well-known/oauth-authorization-server"
Fields = Mapping[str, object]


@dataclass
class Script:
    """`answers` by path replace the usual ones. `seen` are the requests, `stolen` what reaches the thief."""

    address: str = ""
    thief: str = ""
    resource: Fields = field(default_factory=dict)
    server: Fields = field(default_factory=dict)
    answers: dict[str, Response] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)
    stolen: list[str] = field(default_factory=list)
    challenge: str = "Bearer"

    @property
    def spec(self) -> ServerSpec:
        return self.with_oauth()

    def with_oauth(self, **oauth: object) -> ServerSpec:
        client = OAuthClient(**oauth)  # type: ignore[arg-type]
        return ServerSpec(NAME, Transport.HTTP, url=f"{self.address}/mcp", oauth=client)

    @property
    def dialog(self) -> Dialog:
        return Dialog(self._agree, str, ignored, browser=True)

    def _agree(self, url: str, redirect_uri: str) -> None:
        query = dict(parse_qsl(urlsplit(url).query))
        self.seen.append(f"authorize {urlencode(query)}")
        answer = f"{redirect_uri}?{urlencode({'code': CODE, 'state': query['state']})}"
        Thread(target=visit, args=(answer,), daemon=True).start()

    async def respond(self, request: Request) -> Response:
        path = request.url.path
        self.seen.append(f"{path} {(await request.body()).decode()} {request.headers.get('authorization', '')}")
        if path in self.answers:
            return self.answers[path]
        if path == "/mcp":
            return Response("", 401, {"WWW-Authenticate": self.challenge})
        known = {
            RESOURCE: {
                "resource": f"{self.address}/mcp",
                "authorization_servers": [self.address],
                **self.resource,
            },
            SERVER: {**self._metadata(), **self.server},
            "/register": {"client_id": "registered", "redirect_uris": ["http://127.0.0.1/callback"]},
            "/token": {"access_token": TOKEN, "token_type": "bearer", "expires_in": 60, "refresh_token": REFRESH},
        }
        return JSONResponse(known[path]) if path in known else PlainTextResponse("", 404)

    def _metadata(self) -> Fields:
        endpoints = {
            "token_endpoint": "token",
            "registration_endpoint": "register",
            "revocation_endpoint": "revoke",
        }
        return {
            "issuer": self.address,
            "authorization_endpoint": f"{self.address}/authorize",
            "code_challenge_methods_supported": ["S256"],
            **{name: f"{self.address}/{path}" for name, path in endpoints.items()},
        }

    async def steal(self, request: Request) -> Response:
        about = request.headers.get("authorization", "")
        self.stolen.append(f"{request.url.path} {(await request.body()).decode()} {about}")
        return JSONResponse({"access_token": "of-the-thief", "token_type": "bearer"})

    def to_the_thief(self, path: str) -> None:
        self.answers[path] = RedirectResponse(f"{self.thief}{path}", 307)

    async def signed_in(self, folder: Path) -> SignedIn:
        """Store tokens as if somebody had signed in."""
        done = SignedIn(self.spec, folder)
        client = Registration("registered", redirect_uri="http://127.0.0.1:1/callback")
        endpoints = f"{self.address}/token", f"{self.address}/revoke"
        expires_at = time.time() + 60
        await done.credentials.save(
            Grant(
                *(done.spec.url, done.spec.url, self.address, *endpoints, client, TOKEN, REFRESH, expires_at),
                seconds=60.0,
                sign_in="of-the-script",
            )
        )
        return done


@asynccontextmanager
async def scripted() -> AsyncIterator[Script]:
    script, methods = Script(), ["GET", "POST"]
    async with (
        serve([Route("/{path:path}", script.respond, methods=methods)]) as script.address,
        serve([Route("/{path:path}", script.steal, methods=methods)]) as script.thief,
    ):
        yield script
