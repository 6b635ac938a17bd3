"""A data folder with its sign-ins, and people who sign in, paste, or do neither well."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import Queue
from threading import Thread

import httpx

from tests.support.authorization_server_running import consent, visit
from toolscript.core.mcp_client.model import OAuthClient, ServerSpec, Transport
from toolscript.core.mcp_client.oauth.grant import Grant
from toolscript.core.mcp_client.oauth.tokens import Credentials, SignIns
from toolscript.gateway.secret_store import Secrets, open_secret_store
from toolscript.gateway.signin import Dialog, sign_in_to

NAME = "remote"


def ignored(_complaint: str) -> None: ...


def store_of(folder: Path) -> Secrets:
    return open_secret_store(folder, find=lambda: None)


def sign_ins_of(folder: Path) -> SignIns:
    return SignIns(folder / "sign-ins", lambda: store_of(folder))


@dataclass
class Person:
    """Agrees in a browser that is redirected to this machine; `alter` changes the address that it is sent to."""

    alter: Callable[[str], str] = lambda address: address
    pages: "Queue[httpx.Response]" = field(default_factory=Queue)
    sent_to: str = ""

    @property
    def dialog(self) -> Dialog:
        return Dialog(self._agree, str, ignored, browser=True)

    def _agree(self, url: str, _redirect_uri: str) -> None:
        Thread(target=self._browse, args=(url,), daemon=True).start()

    def _browse(self, url: str) -> None:
        self.sent_to = self.alter(consent(url))
        self.pages.put(visit(self.sent_to))


@dataclass
class PersonElsewhere:
    """Agrees in a browser on another machine, and pastes what `lines` makes of the address that it ends at."""

    lines: Callable[[str], list[str]] = lambda address: [address]
    complaints: list[str] = field(default_factory=list)
    _typed: "Queue[str]" = field(default_factory=Queue)

    @property
    def dialog(self) -> Dialog:
        return Dialog(self._agree, self._typed.get, self.complaints.append, browser=False)

    def _agree(self, url: str, _redirect_uri: str) -> None:
        for line in self.lines(consent(url)):
            self._typed.put(f"{line}\n")


@dataclass
class SignedIn:
    """A server with a sign-in in a folder."""

    spec: ServerSpec
    folder: Path

    @property
    def credentials(self) -> Credentials:
        """Return credentials as another process has them."""
        credentials = sign_ins_of(self.folder).of(self.spec)
        assert credentials is not None
        return credentials

    async def grant(self) -> Grant:
        grant = await self.credentials.load()
        assert grant is not None
        return grant

    async def spoil(self) -> Grant:
        """Make the stored access token one that the server refuses."""
        grant = replace(await self.grant(), access_token="not-a-token-of-anybody", expires_at=None)
        await self.credentials.save(grant)
        return grant


def remote(port: str, **oauth: object) -> ServerSpec:
    client = OAuthClient(**oauth)  # type: ignore[arg-type]
    return ServerSpec(NAME, Transport.HTTP, url=f"http://127.0.0.1:{port}/mcp", oauth=client)


async def signed_in(spec: ServerSpec, folder: Path, person: Person | PersonElsewhere | None = None) -> SignedIn:
    done = SignedIn(spec, folder)
    await sign_in_to(spec, done.credentials, (person or Person()).dialog, ())
    return done
