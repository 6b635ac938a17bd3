"""Passwords of private servers: made once, and kept where only their owner can read."""

import secrets
from pathlib import Path


def kept_password(file: Path) -> str:
    if not file.exists():
        draft = file.with_suffix(".draft")
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_hex(24))
        draft.replace(file)
    return file.read_text()
