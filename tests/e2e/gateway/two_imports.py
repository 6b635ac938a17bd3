"""Loads the SDK on two threads at once, as a gateway does, with the unluckiest timing there is.

The one for the servers' connections is held inside the package until the one for `/mcp` waits for it.
"""

import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from types import CodeType

from toolscript.core.mcp.lazy_mount import load
from toolscript.gateway.serve import MODULES

WAIT_SECONDS = 20.0
failures: list[BaseException] = []
inside = threading.Event()


def run(action: Callable[[], object]) -> None:
    try:
        action()
    except ImportError as error:
        failures.append(error)


servers = threading.Thread(target=run, args=[lambda: import_module("toolscript.core.mcp_client.connection")])
routes = threading.Thread(target=run, args=[lambda: load(MODULES)])


def waits_for_an_import(thread: threading.Thread) -> bool:
    frame = sys._current_frames().get(thread.ident or 0)
    return frame is not None and _is_lock(frame.f_code)


def _is_lock(code: CodeType) -> bool:
    return "importlib._bootstrap" in code.co_filename and code.co_name == "acquire"


def hold(event: str, given: tuple[object, ...]) -> None:
    """Hold an import; every import calls this before it takes a lock."""
    ours = event == "import" and threading.current_thread() is servers
    if ours and not inside.is_set() and str(given[0]).startswith("mcp.client"):
        inside.set()
        ends_at = time.monotonic() + WAIT_SECONDS
        while not waits_for_an_import(routes):
            if time.monotonic() > ends_at:
                raise ImportError("the other thread never came")
            time.sleep(0.01)


sys.addaudithook(hold)
servers.start()
inside.wait(WAIT_SECONDS)
routes.start()
servers.join()
routes.join()
if not inside.is_set():
    sys.exit("nobody was held")
sys.exit(f"{failures}" if failures else 0)
