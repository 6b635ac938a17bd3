"""The service, deployable 2: wires adapters to the core. One function per command, loaded when it is run."""

from typing import TYPE_CHECKING

from toolscript.late_names import late_names

if TYPE_CHECKING:
    from toolscript.service.bench_index import bench_index
    from toolscript.service.bench_search import bench_search
    from toolscript.service.evaluating import evaluate
    from toolscript.service.serving import serve
    from toolscript.service.skills import export_skills, import_skills, open_skills, rebuild_skills, reclassify
    from toolscript.service.writing import doctor, drain, import_file, migrate, reindex, work

__all__ = [
    "bench_index",
    "bench_search",
    "doctor",
    "drain",
    "evaluate",
    "export_skills",
    "import_file",
    "import_skills",
    "migrate",
    "open_skills",
    "rebuild_skills",
    "reclassify",
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
    "export_skills": "skills",
    "import_file": "writing",
    "import_skills": "skills",
    "migrate": "writing",
    "open_skills": "skills",
    "rebuild_skills": "skills",
    "reclassify": "skills",
    "reindex": "writing",
    "serve": "serving",
    "work": "writing",
}

__getattr__ = late_names(__name__, _HOMES)
