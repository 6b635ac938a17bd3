"""The first answers of `toolscript mcp` where no gateway has run yet: those of one without servers."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from contract_pages import ROOT

from toolscript.gateway.first_answers import FILE, ask_first


def first_answers() -> dict[Path, str]:
    """Return the text of the file in the package."""
    command = [sys.executable, "-m", "toolscript", "gateway", "start", "--private"]
    with tempfile.TemporaryDirectory() as home:
        variables = {**os.environ, "HOME": home, "TOOLSCRIPT_SEARCH_MODEL": "none", "TOOLSCRIPT_DATA_DIR": home}
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables, cwd=home
        ) as gateway:
            assert gateway.stdin is not None
            assert gateway.stdout is not None
            said = json.loads(gateway.stdout.readline())
            answers = ask_first(said["url"], said["token"])
            gateway.stdin.close()
    text = json.dumps(answers, ensure_ascii=False, separators=(",", ":"))
    return {ROOT / "src/toolscript/gateway" / FILE: f"{text}\n"}
