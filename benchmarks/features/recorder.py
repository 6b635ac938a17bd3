"""Runs a server, and notes which messages its client sends: `recorder.py FILE COMMAND...`."""

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO


def main(file: Path, *command: str) -> int:
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdin is not None
        signal.signal(signal.SIGTERM, lambda *_: server.terminate())
        # A server that ends by itself must not wait for its client to say something more.
        threading.Thread(target=_pass_on, args=(server.stdin, file), daemon=True).start()
        return server.wait()


def _pass_on(server: IO[bytes], file: Path) -> None:
    with file.open("a", encoding="utf-8") as notes, server:
        for line in sys.stdin.buffer:
            notes.write(_method(line) + "\n")
            notes.flush()
            server.write(line)
            server.flush()


def _method(line: bytes) -> str:
    try:
        message = json.loads(line)
    except ValueError:
        return "?"
    return str(message.get("method", "an answer")) if isinstance(message, dict) else "?"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
