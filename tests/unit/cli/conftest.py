import pytest

from tests.unit.cli.commands import CommandLine


@pytest.fixture
def toolscript(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory
) -> CommandLine:
    return CommandLine(monkeypatch, capsys, tmp_path_factory.mktemp("home"))
