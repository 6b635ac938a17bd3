"""A real authorization server under Node, and a person who signs in there without a browser."""

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

import httpx

from tests.support.npm_tools import installed

HERE = Path(__file__).parent / "authorization_server"
MAX_STEPS = 20
_FORM = re.compile(r'<form[^>]* action="([^"]+)"')
_PROMPT = re.compile(r'name="prompt" value="(\w+)"')


@dataclass
class AuthorizationServer:
    """`events` are the requests to its token and registration endpoints, in their order."""

    issuer: str
    events: list[dict[str, str]] = field(default_factory=list)

    def count(self, outcome: str, grant: str = "refresh_token") -> int:
        return self.events.count({"outcome": outcome, "grant": grant})


@contextmanager
def authorization_server(token_seconds: int = 300) -> Iterator[AuthorizationServer]:
    """Start one whose access tokens are valid for so long."""
    library = _modules() / "oidc-provider" / "lib" / "index.js"
    command = ["node", str(HERE / "server.mjs"), str(library), str(token_seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        output = process.stdout
        server = AuthorizationServer(output.readline().strip())

        def follow() -> None:
            for line in output:
                # The library prints warnings about settings for development.
                if line.startswith("{"):
                    server.events.append(json.loads(line))

        Thread(target=follow, daemon=True).start()
        try:
            yield server
        finally:
            process.kill()


def browser_command(chromium: str, notes: Path) -> str:
    """Return a value for `BROWSER`: a person at a real browser, who notes the page at the end."""
    return shlex.join(["node", str(HERE / "browse.mjs"), str(_modules()), chromium, str(notes), "%s"])


def _modules() -> Path:
    return installed(HERE) / "node_modules"


def consent(url: str, person: str = "ann") -> str:
    """Sign in and agree, as a browser would; return the address that the browser is sent to in the end."""
    with httpx.Client(trust_env=False, timeout=20) as browser:
        answer = browser.get(url)
        for _ in range(MAX_STEPS):
            if answer.is_redirect:
                target = urljoin(str(answer.url), answer.headers["location"])
                if urlsplit(target).netloc != urlsplit(url).netloc:
                    return target
                answer = browser.get(target)
                continue
            form, prompt = _FORM.search(answer.text), _PROMPT.search(answer.text)
            if form is None or prompt is None:
                raise AssertionError(answer.text[-2000:])
            fields = {"prompt": prompt[1], "login": person, "password": "any"}
            answer = browser.post(urljoin(str(answer.url), form[1]), data=fields)
    raise AssertionError("the sign-in does not end")


def changed(address: str, **fields: str | None) -> str:
    """Return the address with other fields in its query; None: without this one."""
    parts = urlsplit(address)
    query = {**dict(parse_qsl(parts.query)), **fields}
    return urlunsplit(parts._replace(query=urlencode({name: value for name, value in query.items() if value})))


def ask_for_tokens(issuer: str, **form: str) -> httpx.Response:
    return httpx.post(f"{issuer}/token", data=form, trust_env=False, timeout=20)


def visit(address: str) -> httpx.Response:
    return httpx.get(address, trust_env=False, timeout=20)
