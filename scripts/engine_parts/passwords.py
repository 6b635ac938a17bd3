"""Passwords of private servers, generated once and readable by their owner only."""

import secrets
from pathlib import Path


def stored_password(file: Path) -> str:
    if not file.exists():
        draft = file.with_suffix(".draft")
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_hex(24))
        draft.replace(file)
    return file.read_text()
