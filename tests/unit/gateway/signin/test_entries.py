"""From the entry of a server in a config file to its sign-in, and out of it."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from starlette.responses import JSONResponse

from tests.unit.gateway.signin.people import NAME, ignored, store_of
from tests.unit.gateway.signin.scripted import REFRESH, Script, scripted
from toolscript.core.errors import ServerUnavailable, ToolscriptError
from toolscript.gateway.signin import Dialog, sign_in, sign_out

pytestmark = pytest.mark.requirement("TS-011")

SECRET = "a-client-secret-of-the-keyring"


def nothing_shown(_url: str, _redirect_uri: str) -> None: ...


def configured(folder: Path, servers: dict[str, dict[str, object]]) -> dict[str, object]:
    """Write a config file; return the flags that name it."""
    file = folder / "servers.json"
    file.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    return {"config": str(file), "data_dir": str(folder / "data")}


@pytest.fixture
async def script() -> AsyncIterator[Script]:
    async with scripted() as made:
        yield made


@pytest.fixture(autouse=True)
def no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")


def test_an_entry_may_have_its_secret_in_the_keyring(tmp_path: Path) -> None:
    store_of(tmp_path / "data").set("TICKETS_SECRET", SECRET)
    oauth = {"clientId": "mine", "clientSecret": "${keyring:TICKETS_SECRET}"}
    flags = configured(tmp_path, {NAME: {"url": "http://127.0.0.1:9/mcp", "oauth": oauth}})
    assert sign_out(NAME, flags=flags) is None
    with pytest.raises(ServerUnavailable, match=r"127\.0\.0\.1:9 cannot be reached"):
        sign_in(NAME, Dialog(nothing_shown, str, ignored), flags=flags)


@pytest.mark.slow
@pytest.mark.parametrize("entry", [None, {"url": "https://moved.example/mcp"}, {"command": "python"}])
async def test_tokens_are_revoked_after_the_entry_is_gone_or_changed(
    script: Script, tmp_path: Path, entry: dict[str, object] | None
) -> None:
    script.answers["/revoke"] = JSONResponse({})
    flags = configured(tmp_path, {NAME: entry} if entry else {})
    done = await script.signed_in(tmp_path / "data")
    out = await asyncio.to_thread(sign_out, NAME, flags=flags)
    assert out is not None
    assert out.revoked
    assert any(seen.startswith(f"/revoke token={REFRESH}") for seen in script.seen)
    assert await done.credentials.load() is None
    if entry and "url" in entry:
        assert await asyncio.to_thread(sign_out, NAME, flags=flags) is None
    else:
        with pytest.raises(ToolscriptError):
            await asyncio.to_thread(sign_out, NAME, flags=flags)
