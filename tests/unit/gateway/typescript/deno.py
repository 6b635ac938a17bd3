"""Runs a client against any gateway at the address."""

import os
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.npm_tools import npm_tools


def run_client_under_deno(url: str, module_text: str, script: str, token: str = "", *, check: bool = True) -> str:
    """Return the output of a script that uses the module's `tools`, with minimal permissions.

    Deno's compiler checks the types first, which takes far longer than the run.
    """
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "client.ts").write_text(module_text, "utf-8")
        (Path(folder) / "main.ts").write_text(f'import {{ tools }} from "./client.ts";\n{script}\n', "utf-8")
        rights = ["--no-prompt", "--allow-env=TOOLSCRIPT_GATEWAY_URL,TOOLSCRIPT_GATEWAY_TOKEN"]
        rights += [f"--allow-net={urlsplit(url).netloc}"] if url else []
        rights += ["--check" if check else "--no-check"]
        command = [str(npm_tools() / "node_modules" / ".bin" / "deno"), "run", *rights, "main.ts"]
        return _printed(command, Path(folder), url, token)


def run_client_under_node(url: str, module_text: str, script: str, token: str = "") -> str:
    """The same without types, which the compiler removes."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "client.ts").write_text(module_text, "utf-8")
        (Path(folder) / "package.json").write_text('{ "type": "module" }', "utf-8")
        (Path(folder) / "main.js").write_text(f'import {{ tools }} from "./client.js";\n{script}\n', "utf-8")
        tsc = npm_tools() / "node_modules" / "typescript" / "bin" / "tsc"
        subprocess.run([str(tsc), "--noCheck", "client.ts"], cwd=folder, check=True, capture_output=True)
        return _printed(["node", "main.js"], Path(folder), url, token)


def _printed(command: list[str], folder: Path, url: str, token: str) -> str:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("TOOLSCRIPT_GATEWAY_")},
        **({"TOOLSCRIPT_GATEWAY_URL": url} if url else {}),
        **({"TOOLSCRIPT_GATEWAY_TOKEN": token} if token else {}),
        "DENO_DIR": str(folder / "deno"),
        "NO_COLOR": "1",
    }
    done = subprocess.run(
        command, cwd=folder, env=environment, check=False, capture_output=True, text=True, timeout=120
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout
