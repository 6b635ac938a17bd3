"""Installing again: an edited file is kept, and launchd gets no agent that it has already."""

import subprocess
from pathlib import Path

import pytest

from toolscript.core.errors import NotFound, SetupError
from toolscript.gateway import autostart
from toolscript.gateway.autostart_files import Launch


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return the commands that are run; all that stop something fail."""
    calls: list[list[str]] = []

    def run(command: tuple[str, ...], **_: object) -> "subprocess.CompletedProcess[str]":
        calls.append([*command])
        return subprocess.CompletedProcess(command, int("bootout" in command), "", "")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TOOLSCRIPT_DATA_DIR", raising=False)
    return calls


@pytest.fixture
def plan(tmp_path: Path, calls: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> autostart.AutostartPlan:
    """Return the plan that an installation follows, for a Mac, whatever this machine is."""
    home = tmp_path / "home"
    launch = Launch(("/bin/toolscript", "gateway", "start"), str(home))
    plan = autostart.autostart_plan("darwin", home, {}, launch, home / ".toolscript")
    monkeypatch.setattr(autostart, "plan_install", lambda **_: plan)
    monkeypatch.setattr(autostart, "why_not_here", lambda *_: "")
    return plan


def test_an_agent_that_is_loaded_is_stopped_before_it_is_started(
    plan: autostart.AutostartPlan, calls: list[list[str]]
) -> None:
    autostart.install(flags={})
    assert [call[1] for call in calls] == ["bootout", "bootstrap"]


def test_an_edited_file_is_kept_beside_the_new_one_and_both_go(plan: autostart.AutostartPlan) -> None:
    autostart.install(flags={})
    ours = plan.path.read_text()
    plan.path.write_text(f"{ours}<!-- mine -->")
    autostart.install(flags={})
    assert plan.path.read_text() == ours
    assert plan.backup.read_text().endswith("<!-- mine -->")
    autostart.uninstall(flags={})
    assert [*plan.path.parent.iterdir()] == []
    with pytest.raises(NotFound):
        autostart.uninstall(flags={})


def test_a_file_of_someone_else_stays(plan: autostart.AutostartPlan) -> None:
    plan.path.parent.mkdir(parents=True)
    plan.path.write_text("<plist/>")
    with pytest.raises(SetupError, match="is not ours"):
        autostart.install(flags={})
    assert plan.path.read_text() == "<plist/>"
