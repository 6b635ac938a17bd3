"""The gateway, deployable 1: wires adapters to the core. One function per command, loaded when it is run."""

from typing import TYPE_CHECKING

from toolscript.late_names import late_names

if TYPE_CHECKING:
    from toolscript.gateway.asking import Need, ask, usual_query
    from toolscript.gateway.benches import bench_gateway, bench_tokens
    from toolscript.gateway.configs import connect, plan_import, write_import
    from toolscript.gateway.eval_drafts import make_draft
    from toolscript.gateway.eval_fitting import fit_recipe
    from toolscript.gateway.eval_pages import make_page
    from toolscript.gateway.evaluating import evaluate
    from toolscript.gateway.examination import examine
    from toolscript.gateway.lifecycle import find, start, status, stop
    from toolscript.gateway.serving import serve_stdio
    from toolscript.gateway.trusting import decide_trust, forget_trust, list_trusted, trust_question

__all__ = [
    "Need",
    "ask",
    "bench_gateway",
    "bench_tokens",
    "connect",
    "decide_trust",
    "evaluate",
    "examine",
    "find",
    "fit_recipe",
    "forget_trust",
    "list_trusted",
    "make_draft",
    "make_page",
    "plan_import",
    "serve_stdio",
    "start",
    "status",
    "stop",
    "trust_question",
    "usual_query",
    "write_import",
]

_HOMES = {
    "Need": "asking",
    "ask": "asking",
    "bench_gateway": "benches",
    "bench_tokens": "benches",
    "connect": "configs",
    "decide_trust": "trusting",
    "evaluate": "evaluating",
    "fit_recipe": "eval_fitting",
    "examine": "examination",
    "find": "lifecycle",
    "forget_trust": "trusting",
    "list_trusted": "trusting",
    "make_draft": "eval_drafts",
    "make_page": "eval_pages",
    "plan_import": "configs",
    "serve_stdio": "serving",
    "start": "lifecycle",
    "status": "lifecycle",
    "stop": "lifecycle",
    "trust_question": "trusting",
    "usual_query": "asking",
    "write_import": "configs",
}

__getattr__ = late_names(__name__, _HOMES)
