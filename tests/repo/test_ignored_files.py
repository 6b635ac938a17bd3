"""Files that the guides create are ignored: a signing key must not be committed by accident."""

import subprocess

import pytest

from tests.repo.shell_pages import ROOT


@pytest.mark.parametrize("path", ["keys/signing-key.json", "keys/jwks.json", "signing-key.json", "other.jsonl"])
def test_files_created_by_a_guide_are_ignored(path: str) -> None:
    output = subprocess.run(["git", "check-ignore", "--no-index", "-q", path], cwd=ROOT, check=False)
    assert output.returncode == 0
