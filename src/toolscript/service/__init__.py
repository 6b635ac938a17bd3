"""The service, deployable 2: wires adapters to the core. One function per command, loaded when it is run."""

from typing import TYPE_CHECKING

from toolscript.late_names import late_names

if TYPE_CHECKING:
    from toolscript.service.bench_index import bench_index
    from toolscript.service.bench_search import bench_search
    from toolscript.service.evaluating import evaluate
    from toolscript.service.serving import serve
    from toolscript.service.writing import doctor, drain, import_file, migrate, reindex, work

__all__ = [
    "bench_index",
    "bench_search",
    "doctor",
    "drain",
    "evaluate",
    "import_file",
    "migrate",
    "reindex",
    "serve",
    "work",
]

_HOMES = {
    "bench_index": "bench_index",
    "bench_search": "bench_search",
    "doctor": "writing",
    "drain": "writing",
    "evaluate": "evaluating",
    "import_file": "writing",
    "migrate": "writing",
    "reindex": "writing",
    "serve": "serving",
    "work": "writing",
}

__getattr__ = late_names(__name__, _HOMES)
