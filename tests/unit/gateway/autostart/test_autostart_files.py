"""The three files that start the gateway at login: golden files, and what their systems make of them."""

import plistlib
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from toolscript.core.errors import SetupError
from toolscript.gateway.autostart_files import UNIT, Launch, launchd_agent, systemd_unit, windows_task

GOLDEN = Path(__file__).with_name("golden")
LINUX = Launch(
    ("/srv/anna/.local/bin/toolscript", "gateway", "start"),
    "/srv/anna",
    {"PATH": "/srv/anna/.local/bin:/usr/local/bin:/usr/bin:/bin"},
)
MAC = Launch(
    ("/opt/homebrew/bin/uvx", "--from", "toolscript[model]", "toolscript", "gateway", "start", "--port", "7400"),
    "/Volumes/anna",
    {"PATH": "/opt/homebrew/bin:/usr/bin:/bin"},
)
WINDOWS = Launch(
    (
        "C:\\Program Files\\Toolscript\\toolscript.exe",
        "gateway",
        "start",
        "--config",
        "D:\\People\\Anna B\\a&b.json",
    ),
    "D:\\People\\Anna B",
)
# What systemd would take for specifiers, variables and ends of words.
HARD = ("/bin/sh", "50% of $HOME", 'a "quoted" word', "back\\slash", "semi;colon", "täglich", "")
NAMESPACE = "{http://schemas.microsoft.com/windows/2004/02/mit/task}"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (UNIT, systemd_unit(LINUX)),
        ("toolscript.gateway.plist", launchd_agent(MAC, "/Volumes/anna/.toolscript/gateway.log")),
        ("autostart.xml", windows_task(WINDOWS, "DESK\\anna")),
    ],
)
def test_a_file_is_the_golden_one(name: str, text: str) -> None:
    assert text == (GOLDEN / name).read_text("utf-8")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("hard", [False, True], ids=["golden", "hard"])
def test_systemd_has_nothing_to_say_about_the_unit(tmp_path: Path, hard: bool) -> None:
    folder = tmp_path / "a folder, 100 %"
    folder.mkdir()
    path = {"PATH": '/usr/bin:/a "b"/$x/100%:/bin'}
    # systemd wants the program to be there.
    launch = Launch(HARD, str(folder), path) if hard else Launch(("/bin/sh", *LINUX.command[1:]), "/", path)
    (tmp_path / UNIT).write_text(systemd_unit(launch), "utf-8")
    done = subprocess.run(
        ["systemd-analyze", "--user", "--man=no", "verify", str(tmp_path / UNIT)],
        env={"PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_launchd_reads_what_was_meant() -> None:
    agent = plistlib.loads(launchd_agent(Launch(HARD, "/Volumes/a&b", {"PATH": "/a<b"}), "/log").encode())
    assert agent["ProgramArguments"] == [*HARD]
    assert (agent["WorkingDirectory"], agent["EnvironmentVariables"]) == ("/Volumes/a&b", {"PATH": "/a<b"})
    assert agent["RunAtLoad"] is True


def test_windows_reads_what_was_meant() -> None:
    task = ET.fromstring(windows_task(WINDOWS, "DESK\\a&b").encode("utf-16"))
    execute = task.find(f"{NAMESPACE}Actions/{NAMESPACE}Exec")
    assert execute is not None
    texts = [element.text for element in execute]
    assert texts == [
        WINDOWS.command[0],
        'gateway start --config "D:\\People\\Anna B\\a&b.json"',
        WINDOWS.folder,
    ]
    assert {element.text for element in task.iter(f"{NAMESPACE}UserId")} == {"DESK\\a&b"}


@pytest.mark.parametrize("text", ["a\nExecStart=/bin/evil", "a\x00b", "a\x7f"])
def test_a_line_end_in_a_path_cannot_become_a_line_of_the_unit(text: str) -> None:
    with pytest.raises(SetupError, match="control character"):
        Launch((text,), "/")
    with pytest.raises(SetupError, match="control character"):
        Launch(("/a",), text)
    with pytest.raises(SetupError, match="control character"):
        Launch(("/a",), "/", {"PATH": text})
