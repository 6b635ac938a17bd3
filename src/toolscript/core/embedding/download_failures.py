"""Failed downloads, cached for a while: not every command should wait for the same refusal.

Light to import: a command that has no model needs none of the libraries that run one.
"""

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from toolscript.core.errors import ModelNotFound

# A short name, and names of the same weights in another library.
MODEL_ALIASES = {
    "multilingual": "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2",
    "Xenova/paraphrase-multilingual-MiniLM-L12-v2": "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2",
    "Xenova/bge-small-en-v1.5": "BAAI/bge-small-en-v1.5",
    "Xenova/bge-base-en-v1.5": "BAAI/bge-base-en-v1.5",
    "Xenova/bge-large-en-v1.5": "BAAI/bge-large-en-v1.5",
    "Xenova/all-MiniLM-L6-v2": "sentence-transformers/all-MiniLM-L6-v2",
    "Xenova/multilingual-e5-large": "intfloat/multilingual-e5-large",
}
# A refusal by the hub will repeat; a network that is down may soon be up.
REFUSED_SECONDS, UNREACHABLE_SECONDS = 3600.0, 600.0
HINT = "`toolscript doctor` tries again; or give the folder of an ONNX model (--model, TOOLSCRIPT_SEARCH_MODEL)"


def model_folder(model: str) -> Path | None:
    """Return the model folder if the value is a path. A name is no path, whatever the current folder contains."""
    folder = Path(model).expanduser()
    return folder if is_path(model) and folder.is_dir() else None


def is_path(model: str) -> bool:
    return Path(model).is_absolute() or model.startswith((".", "~"))


@dataclass(frozen=True)
class Refusals:
    """The cached refusals, in the folder of downloaded models."""

    folder: Path

    @property
    def _file(self) -> Path:
        return self.folder / "refused.json"

    def check(self, model: str) -> None:
        """Raise the cached error while it has not expired."""
        refusal = self._all().get(model)
        if isinstance(refusal, Mapping):
            with suppress(KeyError, TypeError, ValueError):
                age, maximum = time.time() - float(refusal["at"]), float(refusal["seconds"])
                if 0 <= age < maximum:
                    minutes = max(1, round((maximum - age) / 60))
                    message = f"{refusal['message']}; next attempt in {minutes} min"
                    raise ModelNotFound(message, hint=HINT, details={"remembered": True})

    def add(self, model: str, message: str, seconds: float) -> ModelNotFound:
        """Cache a refusal and return the error to raise. If the file cannot be written, the next try waits too."""
        refusals = {**self._all(), model: {"message": message, "at": time.time(), "seconds": seconds}}
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            new = self._file.with_suffix(".new")
            new.write_text(json.dumps(refusals), "utf-8")
            new.replace(self._file)
        return ModelNotFound(message, hint=HINT)

    def forget(self) -> None:
        with suppress(OSError):
            self._file.unlink(missing_ok=True)

    def _all(self) -> dict[str, object]:
        try:
            refusals = json.loads(self._file.read_text("utf-8"))
            return refusals if isinstance(refusals, dict) else {}
        except (OSError, ValueError, RecursionError):
            return {}
