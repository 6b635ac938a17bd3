"""The gateway in the background outlives the console of the command that started it."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from toolscript.core.errors import SetupError
from toolscript.gateway import launch

pytestmark = pytest.mark.requirement("GW-001")


@pytest.mark.parametrize(("platform", "session", "flags"), [("win32", False, 0x08000200), ("linux", True, 0)])
def test_the_gateway_is_started_apart_from_the_console(
    platform: str, session: bool, flags: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given: dict[str, object] = {}

    def popen(_command: list[str], **options: object) -> None:
        given.update(options)
        raise OSError(1, "stop here")

    monkeypatch.setattr(subprocess, "CREATE_NO_WINDOW", 0x08000000, raising=False)
    monkeypatch.setattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0x200, raising=False)
    monkeypatch.setattr(launch, "sys", SimpleNamespace(platform=platform, executable=sys.executable))
    monkeypatch.setattr(launch, "Popen", popen)
    with pytest.raises(SetupError, match="stop here"):
        launch.start_in_background(tmp_path, [], {}, until_ready=True)
    assert (given["start_new_session"], given["creationflags"]) == (session, flags)
