"""What is generated is fresh, and what should start fast imports little."""

import subprocess
import sys

from tests.house.sources import ROOT

SLOW_TO_IMPORT = {
    *("fastapi", "fastembed", "grpc", "numpy", "onnxruntime", "openai", "psycopg"),
    *("pydantic", "qdrant_client", "sqlalchemy"),
}
SHOW_HELP = """
import sys
from toolscript.__main__ import main
sys.argv = ["toolscript", "--help"]
try:
    main()
except SystemExit as done:
    assert not done.code, done.code
sys.stderr.write("\\n".join(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def test_the_generated_pages_are_fresh() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "generate-docs"), "--check"]
    checked = subprocess.run(command, check=False, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr


def test_help_imports_no_driver_and_no_model() -> None:
    command = [sys.executable, "-c", SHOW_HELP]
    shown = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "Usage: toolscript" in shown.stdout
    assert SLOW_TO_IMPORT & set(shown.stderr.splitlines()) == set()
