"""Which variables of a person's environment every server gets, without being asked for in its entry.

A program started by hand finds the proxy, the certificates, the agents and the display of whoever starts it, and
many servers work no other way. Tokens, passwords and keys are not among them: an entry that wants one names it, in
`env` or in `envPassthrough`.
"""

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

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


def inherited(environment: Mapping[str, str], wanted: Sequence[str] = ()) -> dict[str, str]:
    """`wanted`: names and patterns of further variables, which a person wrote down."""
    return {
        name: value for name, value in environment.items() if _is_usual(name, value) or _is_wanted(name, wanted)
    }


def _is_usual(name: str, value: str) -> bool:
    if not name.startswith(FAMILIES):
        return name in NAMES
    return not (_SECRET.search(name) or _CREDENTIALS.search(value))


def _is_wanted(name: str, wanted: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in wanted)
