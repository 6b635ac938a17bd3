"""Downloads that did not work, remembered for a while: nobody wants to wait for the same refusal in every command.

Light to import: whoever has been refused needs no model, and none of the libraries that run one.
"""

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from toolscript.core.errors import ModelNotFound

# Names of the same weights as another library has them.
OTHER_NAMES = {
    "Xenova/bge-small-en-v1.5": "BAAI/bge-small-en-v1.5",
    "Xenova/bge-base-en-v1.5": "BAAI/bge-base-en-v1.5",
    "Xenova/bge-large-en-v1.5": "BAAI/bge-large-en-v1.5",
    "Xenova/all-MiniLM-L6-v2": "sentence-transformers/all-MiniLM-L6-v2",
    "Xenova/multilingual-e5-large": "intfloat/multilingual-e5-large",
}
# A hub that says no will say it again; a network that is down may be up in a moment.
REFUSED_SECONDS, UNREACHABLE_SECONDS = 3600.0, 600.0
HINT = "`toolscript doctor` tries again; or give the folder of an ONNX model (--model, TOOLSCRIPT_SEARCH_MODEL)"


def model_folder(model: str) -> Path | None:
    """The folder that is meant, if one is: a name never is, whatever lies in the folder of the moment."""
    folder = Path(model).expanduser()
    is_a_path = folder.is_absolute() or model.startswith((".", "~"))
    return folder if is_a_path and folder.is_dir() else None


@dataclass(frozen=True)
class Refusals:
    """In the folder that models are downloaded to."""

    folder: Path

    @property
    def _file(self) -> Path:
        return self.folder / "refused.json"

    def check(self, model: str) -> None:
        """Raises what was raised before, while it is worth believing."""
        told = self._all().get(model)
        if isinstance(told, Mapping):
            with suppress(KeyError, TypeError, ValueError):
                age, maximum = time.time() - float(told["at"]), float(told["seconds"])
                if 0 <= age < maximum:
                    minutes = max(1, round((maximum - age) / 60))
                    message = f"{told['message']}; it is tried again in {minutes} min"
                    raise ModelNotFound(message, hint=HINT, details={"remembered": True})

    def add(self, model: str, message: str, seconds: float) -> ModelNotFound:
        """Written down, and the error to raise. Where nothing can be written the next one waits as long."""
        told = {**self._all(), model: {"message": message, "at": time.time(), "seconds": seconds}}
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            new = self._file.with_suffix(".new")
            new.write_text(json.dumps(told), "utf-8")
            new.replace(self._file)
        return ModelNotFound(message, hint=HINT)

    def forget(self) -> None:
        with suppress(OSError):
            self._file.unlink(missing_ok=True)

    def _all(self) -> dict[str, object]:
        try:
            told = json.loads(self._file.read_text("utf-8"))
            return told if isinstance(told, dict) else {}
        except (OSError, ValueError, RecursionError):
            return {}
