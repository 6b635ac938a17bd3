"""The gateway, deployable 1: wires adapters to the core. One function per command, loaded when it is run."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolscript.gateway.asking import Need, ask
    from toolscript.gateway.configs import connect, plan_import, write_import
    from toolscript.gateway.examination import examine
    from toolscript.gateway.serving import serve_stdio, start, status, stop
    from toolscript.gateway.token_bench import bench_tokens

__all__ = [
    "Need",
    "ask",
    "bench_tokens",
    "connect",
    "examine",
    "plan_import",
    "serve_stdio",
    "start",
    "status",
    "stop",
    "write_import",
]

_HOMES = {
    "Need": "asking",
    "ask": "asking",
    "bench_tokens": "token_bench",
    "connect": "configs",
    "examine": "examination",
    "plan_import": "configs",
    "serve_stdio": "serving",
    "start": "serving",
    "status": "serving",
    "stop": "serving",
    "write_import": "configs",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(name)
    return getattr(import_module(f"toolscript.gateway.{_HOMES[name]}"), name)
