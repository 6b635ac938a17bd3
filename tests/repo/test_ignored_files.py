"""What the guides leave in a clone is ignored: a key that signs tokens must not be committed by accident."""

import subprocess

import pytest

from tests.repo.shell_pages import ROOT


@pytest.mark.parametrize("path", ["keys/signing-key.json", "keys/jwks.json", "signing-key.json", "other.jsonl"])
def test_what_a_guide_makes_is_ignored(path: str) -> None:
    told = subprocess.run(["git", "check-ignore", "--no-index", "-q", path], cwd=ROOT, check=False)
    assert told.returncode == 0
