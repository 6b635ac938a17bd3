"""The service, deployable 2: wires adapters to the core. One function per command."""

from toolscript.service.bench import bench_search
from toolscript.service.serving import serve
from toolscript.service.writing import doctor, drain, import_file, migrate, reindex, work

__all__ = ["bench_search", "doctor", "drain", "import_file", "migrate", "reindex", "serve", "work"]
