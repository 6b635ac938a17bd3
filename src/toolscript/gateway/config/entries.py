"""Validation of one `mcpServers` entry: a server spec with its inherited variables, or problems."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import urlsplit

from toolscript.core.mcp_client.model import OAuthClient, ServerSpec, Transport
from toolscript.gateway.config.problems import RULE, Finding, Problem, Severity, is_server_name, nearest_name
from toolscript.gateway.config.variables import FindSecret, Surroundings, fill, no_secret

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
NAMES = frozenset(
    [
        *PROXIES,
        *(name.lower() for name in PROXIES),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE"),
        *("NODE_EXTRA_CA_CERTS", "NODE_USE_SYSTEM_CA", "NODE_USE_ENV_PROXY", "GIT_SSL_CAINFO", "DENO_CERT"),
        *("SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST"),
        *("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "BROWSER"),
        *("LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP"),
        *(
            "NVM_DIR",
            "VOLTA_HOME",
            "PNPM_HOME",
            "BUN_INSTALL",
            "DENO_DIR",
            "PYENV_ROOT",
            "CARGO_HOME",
            "JAVA_HOME",
        ),
        *("PLAYWRIGHT_BROWSERS_PATH", "PUPPETEER_EXECUTABLE_PATH"),
    ]
)
FAMILIES = ("LC_", "XDG_", "UV_", "PIP_", "NPM_CONFIG_", "npm_config_")
_CREDENTIALS = re.compile(r"://[^/@\s]+@")
_SECRET = re.compile(r"TOKEN|SECRET|PASSW|AUTH|CREDENTIAL|KEY|COOKIE|USERNAME", re.IGNORECASE)

PASSTHROUGH = "envPassthrough"
KEYS = (
    *("command", "args", "env", "cwd", "url", "headers", "type", "includeTools", "excludeTools"),
    *("disabled", "enabled", "startupTimeout", "callTimeout", PASSTHROUGH, "oauth"),
)
OAUTH_KEYS = ("clientId", "clientSecret", "scopes", "clientMetadataUrl", "callbackPort", "issuer")
# What makes an entry another server when it changes.
IDENTIFYING = ("command", "args", "cwd", "url")
TYPES = {
    "stdio": Transport.STDIO,
    "http": Transport.HTTP,
    "streamable-http": Transport.HTTP,
    "streamableHttp": Transport.HTTP,
    "sse": Transport.SSE,
}
MAX_SECONDS = 24 * 3600.0

_NO_EFFECT = {True: ("headers", "oauth"), False: ("args", "env", "cwd", PASSTHROUGH)}
_OAUTH_TEXTS = ("clientId", "clientSecret", "clientMetadataUrl", "issuer")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNSENDABLE = re.compile("[\0\ud800-\udfff]")


def inherited(environment: Mapping[str, str], wanted: Sequence[str] = ()) -> dict[str, str]:
    """Return the variables a server inherits. `wanted`: patterns of further ones, from the config file."""
    return {
        name: value for name, value in environment.items() if _is_usual(name, value) or _is_wanted(name, wanted)
    }


def _is_usual(name: str, value: str) -> bool:
    if not name.startswith(FAMILIES):
        return name in NAMES
    return not (_SECRET.search(name) or _CREDENTIALS.search(value))


def _is_wanted(name: str, wanted: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in wanted)


_SYNONYMS = {"serverUrl": "url", "httpUrl": "url", "transport": "type", "transportType": "type"}
_SYNONYMS |= {"timeout": "callTimeout, in seconds,", "allowedTools": "includeTools", "tools": "includeTools"}


def read_entry(
    name: str,
    raw: object,
    file: Path,
    environment: Mapping[str, str],
    find_secret: FindSecret = no_secret,
) -> tuple[ServerSpec | None, list[Problem]]:
    """Return the server, or None if it is disabled or invalid, and the problems."""
    secrets: dict[str, str] = {}

    def find(name: str) -> str | None:
        value = find_secret(name)
        return value if value is None else secrets.setdefault(name, value)

    fields = _Fields(raw if isinstance(raw, Mapping) else {}, Surroundings(environment, file.parent, find))
    spec = None
    if not is_server_name(name):
        fields.refuse("its name cannot be used", f"call it {nearest_name(name)!r}; a name is {RULE}")
    elif not isinstance(raw, Mapping):
        fields.refuse("is not an object", 'write {"command": ...} or {"url": ...}')
    elif not is_switched_off(raw):
        spec = replace(_spec(name, fields), secrets=secrets)
    shown = name if len(name) <= 80 else name[:77] + "..."
    problems = [
        Problem(shown, file, finding.message, finding.fix, finding.severity) for finding in fields.findings
    ]
    return None if fields.failed else spec, problems


def is_switched_off(raw: Mapping[str, object]) -> bool:
    return raw.get("disabled") is True or raw.get("enabled") is False


def transport_of(type_: str, command: str, url: str) -> Transport | Finding:
    """Return the declared transport, else infer it from the command or the url."""
    if bool(command) == bool(url):
        what = "has both a command and a url" if command else "has neither a command nor a url"
        return Finding(what, "give it a command (a program to start) or a url (a server that runs)")
    if type_ and type_ not in TYPES:
        return Finding("has a type that is unknown", f"use one of: {', '.join(TYPES)}; or leave it out")
    inferred = Transport.STDIO if command else Transport.SSE if _is_sse(url) else Transport.HTTP
    transport = TYPES.get(type_, inferred)
    if (transport is Transport.STDIO) != bool(command):
        return Finding(f"is of type {type_} and has a {'command' if command else 'url'}", "leave the type out")
    return transport


def _is_sse(url: str) -> bool:
    return re.split(r"[?#]", url, maxsplit=1)[0].rstrip("/").endswith("/sse")


def _spec(name: str, fields: "_Fields") -> ServerSpec:
    command, url, type_ = fields.path("command"), fields.text("url"), fields.text("type")
    # A command with an unset variable still counts as a command: one mistake, one message.
    transport = transport_of(type_, command or fields.written("command"), url or fields.written("url"))
    if isinstance(transport, Finding):
        fields.findings.append(transport)
        transport = Transport.STDIO
    if url:
        fields.check_url(url)
    # Never the current folder: programs load files from it.
    cwd = fields.path("cwd") or "."
    fields.warn_of_keys_without_effect(transport)
    return ServerSpec(
        name=name,
        transport=transport,
        command=command,
        args=fields.texts("args"),
        env=fields.pairs("env"),
        cwd=str(fields.surroundings.folder / cwd) if transport is Transport.STDIO else None,
        url=url,
        headers=fields.pairs("headers"),
        oauth=fields.oauth(),
        include_tools=fields.patterns("includeTools"),
        exclude_tools=fields.patterns("excludeTools"),
        start_seconds=fields.seconds("startupTimeout", ServerSpec.start_seconds),
        call_seconds=fields.seconds("callTimeout", ServerSpec.call_seconds),
        inherited=_inherited(transport, fields),
        written=json.dumps([fields.raw.get(key) for key in IDENTIFYING], sort_keys=True),
    )


def _inherited(transport: Transport, fields: "_Fields") -> dict[str, str]:
    wanted = fields.patterns(PASSTHROUGH)
    return inherited(fields.surroundings.environment, wanted) if transport is Transport.STDIO else {}


@dataclass
class _Fields:
    """Values of an entry by key. An invalid value becomes a finding and an empty value."""

    raw: Mapping[str, object]
    surroundings: Surroundings
    findings: list[Finding] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        return any(finding.severity is Severity.ERROR for finding in self.findings)

    def refuse(self, message: str, fix: str) -> None:
        self.findings.append(Finding(message, fix))

    def written(self, key: str) -> str:
        return str(self.raw.get(key) or "")

    def text(self, key: str) -> str:
        value = self.raw.get(key)
        if value is not None and not isinstance(value, str):
            self.refuse(
                f"{key} is not text", f"write {key} in quotes" + ", its words in args" * (key == "command")
            )
        return self._filled(key, value) if isinstance(value, str) else ""

    def path(self, key: str) -> str:
        text, home = self.text(key), self.surroundings.home
        if text != "~" and not text.startswith(("~/", "~\\")):
            return text
        if home is None:
            self.refuse(f"{key} begins with ~ and the home folder is unknown", "set HOME, or write the whole path")
        return f"{home}{text[1:]}"

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.raw.get(key)
        if value is None:
            return ()
        if not isinstance(value, list):
            self.refuse(f"{key} is not a list", f'write {key} as a list: ["...", "..."]')
            return ()
        return tuple(self._scalar(f"{key}[{number}]", item) for number, item in enumerate(value))

    def patterns(self, key: str) -> tuple[str, ...]:
        value = self.raw.get(key)
        if isinstance(value, list) and not all(isinstance(item, str) for item in value):
            self.refuse(f"{key} is not a list of texts", f'write names or patterns: {key}: ["read_*"]')
            return ()
        return self.texts(key)

    def pairs(self, key: str) -> dict[str, str]:
        value = self.raw.get(key)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self.refuse(f"{key} is not an object", f'write {key} as an object: {{"NAME": "value"}}')
            return {}
        return {name: self._pair(key, name, item) for name, item in value.items()}

    def oauth(self) -> OAuthClient:
        """Return how to sign in, as far as the entry says it."""
        raw = self.raw.get("oauth")
        if raw is None:
            return OAuthClient()
        if not isinstance(raw, Mapping):
            self.refuse("oauth is not an object", 'write it as an object: {"clientId": "..."}')
            return OAuthClient()
        for key in raw.keys() - {*OAUTH_KEYS}:
            fix = f"take it out; known are {', '.join(OAUTH_KEYS)}"
            self.findings.append(Finding(f"oauth.{_shown(key)} is not understood", fix, Severity.WARNING))
        texts = {key: self._scalar(f"oauth.{key}", raw.get(key) or "") for key in _OAUTH_TEXTS}
        if texts["clientSecret"] and not texts["clientId"]:
            self.refuse("oauth has a clientSecret without a clientId", "add the clientId that it belongs to")
        url = texts["clientMetadataUrl"]
        if url and not re.fullmatch(r"https://[^/?#\s]+/[^\s#]+", url):
            self.refuse("oauth.clientMetadataUrl is not an address", "write it as https://host/path")
        issuer = texts["issuer"]
        if issuer and not re.fullmatch(r"https?://[^/?#\s]+(/[^?#\s]*)?", issuer):
            self.refuse("oauth.issuer is not an address", "write it as https://host")
        return OAuthClient(
            texts["clientId"], texts["clientSecret"], self._scopes(raw), url, self._port(raw), issuer
        )

    def _scopes(self, raw: Mapping[str, object]) -> tuple[str, ...]:
        value = raw.get("scopes") or []
        scopes = value.split() if isinstance(value, str) else value
        if not isinstance(scopes, list) or not all(isinstance(scope, str) and scope for scope in scopes):
            self.refuse("oauth.scopes is not a list of texts", 'write it as a list: ["read", "write"]')
            return ()
        return tuple(self._filled("oauth.scopes", scope) for scope in scopes)

    def _port(self, raw: Mapping[str, object]) -> int:
        port = raw.get("callbackPort") or 0
        if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port < 1 << 16:
            self.refuse("oauth.callbackPort is not a port", "write a number of at most 65535, or leave it out")
            return 0
        return port

    def seconds(self, key: str, default: float) -> float:
        value = self.raw.get(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MAX_SECONDS:
            self.refuse(f"{key} is not a time", f"write it in seconds, more than 0 and at most {MAX_SECONDS:.0f}")
            return default
        return float(value)

    def check_url(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            sound = parts.scheme in {"http", "https"} and parts.hostname and (parts.port or 1)
        except ValueError:
            sound = False
        if not sound or re.search(r"\s", url):
            self.refuse("url is not the address of a server", "write it as https://host/path")

    def warn_of_keys_without_effect(self, transport: Transport) -> None:
        for key in self.raw:
            if key not in KEYS:
                self.findings.append(
                    Finding(f"{_shown(key)} is not understood", _suggestion(key), Severity.WARNING)
                )
        for key in _NO_EFFECT[transport is Transport.STDIO]:
            if self.raw.get(key):
                kind = "url" if transport is Transport.STDIO else "command"
                fix = f"take {key} out; only a server with a {kind} has it"
                self.findings.append(Finding(f"{key} has no effect", fix, Severity.WARNING))
        for key in ("disabled", "enabled"):
            if not isinstance(self.raw.get(key), bool | None):
                self.refuse(f"{key} is neither true nor false", "write true or false, without quotes")

    def _pair(self, key: str, name: str, value: object) -> str:
        where = f"{key}.{_shown(name)}"
        named = _HEADER.fullmatch(name) if key == "headers" else name and not re.search("[=\0\ud800-\udfff]", name)
        if not named:
            self.refuse(f"{where} has a name that cannot be sent", "correct the name")
        text = self._scalar(where, value)
        if key == "headers" and re.search(r"[\r\n]", text):
            self.refuse(f"{where} has a line break in it", "write it in one line")
        return text

    def _scalar(self, where: str, value: object) -> str:
        if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
            return json.dumps(value)
        if isinstance(value, str):
            return self._filled(where, value)
        self.refuse(f"{where} is not text", "write it in quotes")
        return ""

    def _filled(self, where: str, text: str) -> str:
        filled, findings = fill(text, self.surroundings)
        self.findings += [Finding(f"{where} {finding.message}", finding.fix) for finding in findings]
        if _UNSENDABLE.search(text + filled):
            self.refuse(f"{where} has a character that cannot be sent", "take it out")
        return "" if findings else filled


def _shown(key: str) -> str:
    return (key if len(key) <= 40 else key[:37] + "...") if key.isprintable() else ascii(key[:40])


def _suggestion(key: str) -> str:
    from difflib import get_close_matches

    lower = {known_key.lower(): known_key for known_key in KEYS}
    near = [_SYNONYMS[key]] if key in _SYNONYMS else get_close_matches(key.lower()[:80], lower, n=1)
    return f"did you mean {lower.get(near[0], near[0])}?" if near else f"take it out; known are {', '.join(KEYS)}"
