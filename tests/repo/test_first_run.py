"""The recorded first run: short enough and consistent. `make lint` checks that it is drawn from its text."""

import re
from xml.etree import ElementTree as ET

from tests.repo.sources import ROOT

TEXT = (ROOT / "docs" / "first-run.txt").read_text("utf-8")
PICTURE = (ROOT / "docs" / "first-run.svg").read_text("utf-8")
GUIDE = (ROOT / "docs" / "gateway.md").read_text("utf-8")

ELSEWHERE = re.compile(r"href|url\(|@import|<script|<image|<foreignObject|data:", re.IGNORECASE)
MAX_SECONDS = 60.0


def commands() -> list[str]:
    return re.findall(r"^\$ (.*)$", TEXT, re.MULTILINE)


def outputs() -> dict[str, str]:
    """Return the output of each command."""
    parts = re.split(r"^\$ (.*)\n", TEXT, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_the_guide_shows_the_picture_and_the_text() -> None:
    assert "](first-run.svg)" in GUIDE
    assert TEXT.strip() in GUIDE


def test_the_picture_needs_nothing_from_elsewhere() -> None:
    assert ET.fromstring(PICTURE).tag == "{http://www.w3.org/2000/svg}svg"
    assert ELSEWHERE.findall(PICTURE) == []
    assert PICTURE.count("http") == 1


def test_the_first_run_takes_less_than_a_minute_of_the_machine_and_its_parts_add_up() -> None:
    """The machine that records may be busy: what counts is the CPU time of the commands."""
    parts = re.findall(r"^\(([\d.]+) s, ([\d.]+) s of CPU\)$", TEXT, re.MULTILINE)
    message = re.search(r"^# ([\d.]+) s in all, ([\d.]+) s of CPU", TEXT, re.MULTILINE)
    assert message is not None
    assert len(parts) == len(commands())
    for number in (0, 1):
        assert abs(sum(float(part[number]) for part in parts) - float(message[number + 1])) < 0.3
    assert float(message[2]) < MAX_SECONDS


def test_the_first_run_installs_sets_up_finds_through_a_client_and_takes_its_entries_back() -> None:
    install, *rest = commands()
    assert "install" in install
    assert rest == [
        "toolscript setup --yes",
        'agent "read file contents"',
        'toolscript search "read_fil"',
        "toolscript setup --undo --yes",
    ]
    printed = outputs()
    assert "3 servers written to ~/.toolscript.json" in printed[rest[0]]
    assert "3 of 3 servers answered" in printed[rest[0]]
    assert printed[rest[1]].startswith("filesystem__read_")
    assert re.search(r"^Tool.*\nfilesystem__read_file ", printed[rest[2]], re.MULTILINE)
    assert printed[rest[3]].startswith("taken back: connect cursor, import\n")
    assert "keyword search only" not in TEXT


def test_the_first_run_does_what_the_guide_says() -> None:
    assert [command for command in commands()[1:] if command not in GUIDE] == []
