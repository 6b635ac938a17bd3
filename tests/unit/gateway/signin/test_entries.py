"""From the entry of a server in a config file to its sign-in, and out of it."""

import json
from pathlib import Path

import pytest

from tests.unit.gateway.signin.people import NAME, ignored, store_of
from toolscript.core.errors import ServerUnavailable
from toolscript.gateway.signin import Dialog, sign_in, sign_out

pytestmark = pytest.mark.requirement("TS-011")

SECRET = "a-client-secret-of-the-keyring"


def nothing_shown(_url: str, _redirect_uri: str) -> None: ...


def configured(folder: Path, entry: dict[str, object]) -> dict[str, object]:
    """Write a config file; return the flags that name it."""
    file = folder / "servers.json"
    file.write_text(json.dumps({"mcpServers": {NAME: entry}}), "utf-8")
    return {"config": str(file), "data_dir": str(folder / "data")}


@pytest.fixture(autouse=True)
def no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")


def test_an_entry_may_have_its_secret_in_the_keyring(tmp_path: Path) -> None:
    store_of(tmp_path / "data").set("TICKETS_SECRET", SECRET)
    oauth = {"clientId": "mine", "clientSecret": "${keyring:TICKETS_SECRET}"}
    flags = configured(tmp_path, {"url": "http://127.0.0.1:9/mcp", "oauth": oauth})
    with pytest.raises(ServerUnavailable, match=r"127\.0\.0\.1:9 cannot be reached"):
        sign_in(NAME, Dialog(nothing_shown, str, ignored), flags=flags)
    assert sign_out(NAME, flags=flags) is None
