"""The libraries that run an embedding model: an extra, which the built-in table does without.

Light to import, as every search asks whether they are there.
"""

from importlib.util import find_spec

from toolscript.core.errors import ModelNotFound

INSTALL = "pip install 'toolscript[model]'"
LIBRARIES = ("onnxruntime", "tokenizers", "fastembed")
# What a model is worth beside the table, in nDCG@10: docs/builtin-model.md measures it.
GAIN = "ranks a little better, .752 against .740"


def is_installed() -> bool:
    return all(find_spec(name) is not None for name in LIBRARIES)


def require_runtime(model: str) -> None:
    """Raise if no model can run here. The error is no news: every answer that it concerns carries it as a hint."""
    if not is_installed():
        raise ModelNotFound(
            f"{model} needs a model runtime, which is not installed",
            hint=f"{INSTALL} {GAIN}; --model builtin hides this",
            details={"remembered": True},
        )
