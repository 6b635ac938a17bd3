import pytest

from tests.surfaces.cli.commands import CommandLine


@pytest.fixture
def toolscript(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(monkeypatch, capsys)
